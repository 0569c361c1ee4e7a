// Go's net/http: a block over a long path, with the read buffer set "for speed" or left alone.
//
//	go run transfer.go serve PORT
//	go run transfer.go fetch PORT TIMES BYTES [READBUFFER]
//
// The client prints what client.py prints, by its own clock. Bytes are counted on the connection.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strconv"
	"time"
)

type counted struct {
	net.Conn
	sent, received *int
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	*c.sent += n
	return n, err
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	*c.received += n
	return n, err
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	check(err)
	return n
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	if os.Args[1] == "serve" {
		check(http.ListenAndServe(":"+os.Args[2], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			size := number(r.URL.Query().Get("bytes"))
			w.Header().Set("Content-Length", strconv.Itoa(size))
			_, _ = w.Write(make([]byte, size))
		})))
		return
	}
	url := fmt.Sprintf("http://%s:%s/?bytes=%s", os.Getenv("FAR_END"), os.Args[2], os.Args[4])
	var sent, received int
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		start := time.Now()
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		end := time.Now()
		fmt.Println("connect", start.UnixNano(), end.UnixNano(), conn.LocalAddr().(*net.TCPAddr).Port)
		if len(os.Args) > 5 {
			check(conn.(*net.TCPConn).SetReadBuffer(number(os.Args[5])))
		}
		return counted{conn, &sent, &received}, nil
	}, DisableCompression: true}
	client := &http.Client{Transport: transport}
	for i := 0; i < number(os.Args[3]); i++ {
		request, err := http.NewRequest("GET", url, nil)
		check(err)
		var start time.Time
		trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
			sent, received, start = 0, 0, time.Now()
		}}
		reply, err := client.Do(request.WithContext(httptrace.WithClientTrace(context.Background(), trace)))
		check(err)
		_, err = io.Copy(io.Discard, reply.Body)
		check(err)
		end := time.Now()
		reply.Body.Close()
		fmt.Println("exchange", start.UnixNano(), end.UnixNano(), sent, received)
		time.Sleep(10 * time.Millisecond)
	}
}
