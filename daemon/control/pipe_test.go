package control

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
)

// A socket of the kernel is outside of synctest's time; these let endpoint and client meet over net.Pipe.

type pipeListener struct {
	conn   net.Conn // handed out once
	once   sync.Once
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{} }

func newPipeEndpoint(d Daemon) *Endpoint { return NewServer(d, slog.New(slog.DiscardHandler)) }

func pipeClient(conn net.Conn) *Client {
	return &Client{transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}}
}
