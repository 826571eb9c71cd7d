package auth

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestGuesses: ten wrong ones, then no more until time has passed; others are not touched by it.
func TestGuesses(t *testing.T) {
	g := newGuesses()
	now := time.Unix(1_000_000, 0)
	wrong := func(i int) [32]byte { return HashKey("wrong" + strconv.Itoa(i)) }
	right := HashKey("right")
	g.succeeded(right)
	full := 0
	for i := range guessBurst {
		err := g.allowed("a", wrong(i), now)
		kit.Require(t, err == nil, "guess %d: %v", i, err)
		if g.failed("a", wrong(i), now) {
			full++
		}
	}
	kit.Equal(t, "the bucket was filled", full, 1)
	err := g.allowed("a", wrong(99), now)
	no, ok := errors.AsType[*TooManyError](err)
	kit.Require(t, ok && errors.Is(err, ErrTooMany) && no.RetryAfter > 0 && no.RetryAfter <= guessEvery,
		"guess %d: %v", guessBurst, err)
	kit.Err(t, "another address", nil)(g.allowed("b", wrong(99), now))
	kit.Err(t, "a key that was right, from the same address", nil)(g.allowed("a", right, now))
	kit.Err(t, "after Retry-After", nil)(g.allowed("a", wrong(99), now.Add(no.RetryAfter)))
	g.failed("a", right, now) // revoked meanwhile
	err = g.allowed("a", right, now)
	kit.Check(t, err != nil, "a key that is not right any more is let through")
}

// TestGuessesOfMany: wrong keys from many addresses slow down nobody at another one, and memory stays bounded.
func TestGuessesOfMany(t *testing.T) {
	g := newGuesses()
	now := time.Unix(1_000_000, 0)
	for i := range 3 * maxRemotes {
		remote, hash := "r"+strconv.Itoa(i), HashKey(strconv.Itoa(i))
		err := g.allowed(remote, hash, now)
		kit.Require(t, err == nil, "the first attempt of %s: %v", remote, err)
		g.failed(remote, hash, now)
	}
	kit.Err(t, "a new key at an address that made no mistake", nil)(g.allowed("elsewhere", HashKey("new"), now))
	for i := range 3 * maxProven {
		g.succeeded(HashKey(strconv.Itoa(i)))
	}
	kit.Check(t, len(g.remotes) <= maxRemotes && len(g.proven) <= maxProven, "%d remotes and %d keys are remembered",
		len(g.remotes), len(g.proven))
}

func TestRemote(t *testing.T) {
	proxies, err := ParseProxies("10.0.0.0/8, 127.0.0.1,::1,")
	kit.Require(t, err == nil && len(proxies) == 3, "%v, %v", proxies, err)
	tests := []struct {
		name, peer string
		forwarded  []string
		proxies    []netip.Prefix
		want       string
	}{
		{"direct", "192.0.2.1:99", nil, proxies, "192.0.2.1"},
		{"a stranger's header is not believed", "192.0.2.1:99", []string{"198.51.100.7"}, proxies, "192.0.2.1"},
		{"nor without proxies", "127.0.0.1:99", []string{"198.51.100.7"}, nil, "127.0.0.1"},
		{"behind one", "127.0.0.1:99", []string{"198.51.100.7"}, proxies, "198.51.100.7"},
		{"behind two", "127.0.0.1:99", []string{"198.51.100.7, 10.1.2.3"}, proxies, "198.51.100.7"},
		{"what the client wrote itself is not reached", "127.0.0.1:99", []string{"203.0.113.9, 198.51.100.7"}, proxies, "198.51.100.7"},
		{"two headers are one", "127.0.0.1:99", []string{"203.0.113.9", "198.51.100.7"}, proxies, "198.51.100.7"},
		{"nonsense ends the walk", "127.0.0.1:99", []string{"198.51.100.7, nonsense"}, proxies, "127.0.0.1"},
		{"a proxy that writes ports", "127.0.0.1:99", []string{"203.0.113.9, 198.51.100.7:4711, 10.1.2.3:80"}, proxies, "198.51.100.7"},
		{"with brackets", "127.0.0.1:99", []string{"[2001:db8:1:2:3::6]:4711, [::ffff:10.1.2.3]"}, proxies, "2001:db8:1:2::/64"},
		{"all are proxies", "127.0.0.1:99", []string{"10.0.0.1"}, proxies, "10.0.0.1"},
		{"IPv4 in IPv6", "[::ffff:192.0.2.1]:99", nil, proxies, "192.0.2.1"},
		{"an IPv6 network is one", "[2001:db8:1:2:3:4:5:6]:99", nil, proxies, "2001:db8:1:2::/64"},
		{"no address", "@", []string{"198.51.100.7"}, proxies, "invalid IP"},
	}
	for _, test := range tests {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = test.peer
		for _, f := range test.forwarded {
			r.Header.Add("X-Forwarded-For", f)
		}
		a := &Access{Proxies: test.proxies}
		kit.Equal(t, test.name, a.Remote(r), test.want)
	}
	for _, bad := range []string{"nonsense", "10.0.0.0/99", "1.2.3"} {
		_, err := ParseProxies(bad)
		kit.Check(t, err != nil, "%q is taken", bad)
	}
}

func TestSecure(t *testing.T) {
	a := &Access{Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for peer, want := range map[string]bool{"127.0.0.1:1": true, "192.0.2.1:1": false} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = peer
		r.Header.Set("X-Forwarded-Proto", "https")
		kit.Check(t, a.Secure(r) == want, "from %s: %v", peer, !want)
	}
}
