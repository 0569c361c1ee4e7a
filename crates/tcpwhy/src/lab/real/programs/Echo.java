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
            serve(new ServerSocket(port));
        } else {
            // Loading classes is no part of an exchange: it is done over loopback, where nobody looks.
            ServerSocket here = new ServerSocket(0);
            Thread warm = new Thread(() -> serve(here));
            warm.setDaemon(true);
            warm.start();
            ask(new InetSocketAddress("127.0.0.1", here.getLocalPort()), 20, "joined", new PrintStream(OutputStream.nullOutputStream()));
            PrintStream account = new PrintStream(new FileOutputStream(FileDescriptor.out), true);
            ask(new InetSocketAddress(System.getenv("FAR_END"), port), Integer.parseInt(args[2]), args[3], account);
        }
    }

    static void serve(ServerSocket listener) {
        try {
            while (true) {
                Socket socket = listener.accept();
                BufferedReader in = new BufferedReader(new InputStreamReader(socket.getInputStream()));
                OutputStream out = socket.getOutputStream();
                for (String line; (line = in.readLine()) != null; ) {
                    out.write((line + "\r\n").getBytes());
                }
                socket.close();
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    static void ask(SocketAddress address, int times, String how, PrintStream account) throws IOException {
        byte[] head = "hello ".getBytes(), body = "world\r\n".getBytes();
        Socket socket = new Socket();
        long before = now();
        socket.connect(address);
        long after = now();
        account.println("connect " + before + " " + after + " " + socket.getLocalPort());
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
            account.println("exchange " + start + " " + now() + " " + both.length + " " + reply);
        }
        socket.close();
    }
}
