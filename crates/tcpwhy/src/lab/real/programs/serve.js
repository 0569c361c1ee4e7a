// Node's http: header and body written apart, with Nagle (noDelay: false, the default before Node 17.5) or without it.
//
//     node serve.js PORT true|false
const http = require('http')
const server = http.createServer({ noDelay: process.argv[3] === 'true' }, (request, response) => {
  response.writeHead(200, { 'Content-Length': 200 })
  response.flushHeaders()
  response.end('x'.repeat(200))
})
server.keepAliveTimeout = 60000
server.listen(Number(process.argv[2]))
