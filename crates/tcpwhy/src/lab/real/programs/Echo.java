// The JDK's sockets: an echo of lines, and a client that writes head and body apart (write-write-read).
//
//     java Echo.java serve PORT
//     java Echo.java ask PORT TIMES split|joined|nodelay
//
// The client prints what client.py prints, by its own clock.
import java.io.*;
import java.net.*;
import java.time.Instant;

public class Echo {
    static long now() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[1]);
        if (args[0].equals("serve")) {
            serve(port);
        } else {
            ask(port, Integer.parseInt(args[2]), args[3]);
        }
    }

    static void serve(int port) throws IOException {
        try (ServerSocket listener = new ServerSocket(port)) {
            while (true) {
                Socket socket = listener.accept();
                BufferedReader in = new BufferedReader(new InputStreamReader(socket.getInputStream()));
                OutputStream out = socket.getOutputStream();
                for (String line; (line = in.readLine()) != null; ) {
                    out.write((line + "\r\n").getBytes());
                }
                socket.close();
            }
        }
    }

    static void ask(int port, int times, String how) throws IOException {
        byte[] head = "hello ".getBytes(), body = "world\r\n".getBytes();
        // What the clock does not measure comes first: loading classes, a connection that nobody looks at.
        SocketAddress address = new InetSocketAddress(System.getenv("FAR_END"), port);
        now();
        try (Socket unused = new Socket()) {
            unused.connect(new InetSocketAddress(System.getenv("FAR_END"), 9));
        } catch (ConnectException refused) {
            // Nobody listens there, and no capture looks.
        }
        Socket socket = new Socket();
        long before = now();
        socket.connect(address);
        long after = now();
        System.out.println("connect " + before + " " + after + " " + socket.getLocalPort());
        socket.setTcpNoDelay(how.equals("nodelay"));
        InputStream in = socket.getInputStream();
        OutputStream out = socket.getOutputStream();
        byte[] both = (new String(head) + new String(body)).getBytes();
        for (int i = 0; i < times; i++) {
            long start = now();
            if (how.equals("joined")) {
                out.write(both);
            } else {
                out.write(head);
                out.write(body);
            }
            int reply = 0;
            while (reply < both.length) {
                int n = in.read(new byte[1000]);
                if (n < 0) {
                    throw new EOFException();
                }
                reply += n;
            }
            System.out.println("exchange " + start + " " + now() + " " + both.length + " " + reply);
        }
        socket.close();
    }
}
