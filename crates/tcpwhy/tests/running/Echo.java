import java.net.ServerSocket;

/** Answers each 120 bytes with 64, to one client after another. */
class Echo {
    public static void main(String[] words) throws Exception {
        try (var listener = new ServerSocket(Integer.parseInt(words[0]))) {
            System.out.println("ready");
            while (true) {
                try (var socket = listener.accept()) {
                    var in = socket.getInputStream();
                    var out = socket.getOutputStream();
                    while (in.readNBytes(120).length == 120) {
                        out.write(new byte[64]);
                    }
                }
            }
        }
    }
}
