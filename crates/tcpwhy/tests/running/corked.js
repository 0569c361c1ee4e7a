// Answers each 120 bytes with 64, on a listening socket that it inherits as descriptor 3. Whatever that has set, its connections have.
const net = require("net");
const server = net.createServer((socket) => {
  let got = 0;
  socket.on("data", (data) => {
    for (got += data.length; got >= 120; got -= 120) socket.write(Buffer.alloc(64));
  });
  socket.on("error", () => {});
});
server.listen({ fd: 3 }, () => console.log("ready"));
