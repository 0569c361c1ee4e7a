import java.net.Socket;

/** Writes each request in two pieces, as a stream without a buffer does; says how long each exchange took, in seconds. */
class Split {
    public static void main(String[] words) throws Exception {
        try (var socket = new Socket(words[0], Integer.parseInt(words[1]))) {
            System.out.println("ready");
            var out = socket.getOutputStream();
            var in = socket.getInputStream();
            while (true) {
                long began = System.nanoTime();
                out.write(new byte[20]);
                out.write(new byte[100]);
                in.readNBytes(64);
                System.out.println((System.nanoTime() - began) / 1e9);
            }
        }
    }
}
