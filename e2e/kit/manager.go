package kit

import (
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
)

// ManagerMessages are the sd_notify(3) messages that a service manager got.
type ManagerMessages chan string

// ListenManager is a service manager that listens on a socket until the test ends.
func ListenManager(t *testing.T, socket string) ManagerMessages {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no datagrams on Unix sockets here")
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	Must(t, err)
	messages := make(ManagerMessages, 1000)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			messages <- string(buf[:n])
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close() // ends the reader
		<-ended
	})
	return messages
}

// Next is the next message with a word in it.
func (messages ManagerMessages) Next(t *testing.T, word string) string {
	t.Helper()
	limit := time.After(5 * time.Minute)
	for {
		select {
		case m := <-messages:
			if strings.Contains(m, word) {
				return m
			}
		case <-limit:
			t.Fatalf("never told %s", word)
		}
	}
}
