// SOFA-RPC over its own protocol (bolt): a service that gives blocks of bytes, and a client that asks for them now and then.
// The transfer buffer is the write buffer's water mark: -Dbolt.netty.buffer.low.watermark and .high.watermark.
//
//     javac -cp 'jars/*' -d classes Rpc.java
//     java -cp 'classes:jars/*' Rpc serve PORT
//     java -cp 'classes:jars/*' Rpc ask PORT TIMES BYTES PAUSE_MS
//
// The client prints `call START END` for each call, by its own clock: what the framework does counts.
import com.alipay.sofa.rpc.config.*;
import java.io.*;
import java.time.Instant;

public class Rpc {
    public interface Blocks {
        byte[] read(int size);
    }

    public static class Zeros implements Blocks {
        public byte[] read(int size) {
            return new byte[size];
        }
    }

    static long now() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }

    static Blocks refer(String address) {
        return new ConsumerConfig<Blocks>().setInterfaceId(Blocks.class.getName()).setRegister(false)
            .setDirectUrl("bolt://" + address).setTimeout(20_000).refer();
    }

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[1]);
        boolean serves = args[0].equals("serve");
        // What a log writes to standard output must not get into the account.
        PrintStream account = new PrintStream(new FileOutputStream(FileDescriptor.out), true);
        System.setOut(System.err);
        // The client has a service of its own too, to load classes and compile over loopback, where nobody looks.
        int own = serves ? port : port + 1;
        ServerConfig server = new ServerConfig().setProtocol("bolt").setBoundHost("0.0.0.0").setPort(own).setDaemon(!serves);
        new ProviderConfig<Blocks>().setInterfaceId(Blocks.class.getName()).setRef(new Zeros()).setServer(server)
            .setRegister(false).export();
        if (serves) {
            return;
        }
        int size = Integer.parseInt(args[3]);
        Blocks warm = refer("127.0.0.1:" + own);
        for (int i = 0; i < 30; i++) {
            warm.read(size);
        }
        Blocks far = refer(System.getenv("FAR_END") + ":" + port);
        // The server has to warm up as well.
        for (int i = 0; i < 20; i++) {
            far.read(size);
        }
        for (int i = 0; i < Integer.parseInt(args[2]); i++) {
            Thread.sleep(Long.parseLong(args[4]));
            long start = now();
            if (far.read(size).length != size) {
                throw new IOException("a short block");
            }
            account.println("call " + start + " " + now());
        }
        System.exit(0);
    }
}
