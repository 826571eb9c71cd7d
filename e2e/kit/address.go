package kit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// The ports of Address are below those that systems give to programs that ask for any.
const (
	firstPort = 10_000
	ports     = 20_000
)

var addresses sync.Map // those that Address returned

// Address returns an address of loopback for a program that must be told where to listen. No port that is chosen by a
// system becomes the same one, neither before the program listens nor after it has ended.
func Address(t testing.TB) string {
	t.Helper()
	for range ports {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(ports))
		if _, again := addresses.LoadOrStore(address, true); again {
			continue
		}
		if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address); err == nil {
			Must(t, l.Close())
			return address
		}
	}
	t.Fatal("no port of loopback is free")
	return ""
}
