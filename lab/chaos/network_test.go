//go:build unix

package chaos

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestConnections: connections that are slow, cut, held, and out of order.
func TestConnections(t *testing.T) {
	t.Parallel()
	toxic := func(kind, direction, attributes string, during time.Duration) func(*room) {
		return func(r *room) {
			r.door.toxic(kind, direction, attributes)
			r.meanwhile(during)
			r.door.clean()
		}
	}
	const group = "connections"
	const down, up = "downstream", "upstream"
	rows(t, []row{
		{group: group, fault: "nothing listens", short: 1, long: 20, do: func(r *room) {
			address := r.door.tcp.Listen
			r.door.tcp.Stop()
			r.meanwhile(time.Second)
			r.door.tcp.Listen = address
			kit.Must(r.t, r.door.tcp.Start())
		}},
		{group: group, fault: "slow: 700 ms, give or take 300", long: 20, do: toxic("latency", down, `"latency":700,"jitter":300`, time.Second)},
		{group: group, fault: "narrow: 8 KB a second", long: 20, do: toxic("bandwidth", up, `"rate":8`, time.Second)},
		{group: group, fault: "half open: requests go into nothing", short: 1, long: 20, do: toxic("timeout", up, `"timeout":0`, 2*time.Second)},
		{group: group, fault: "half open: no answer comes", long: 20, do: toxic("timeout", down, `"timeout":0`, 2*time.Second)},
		{group: group, fault: "reset while sending", short: 1, long: 20, do: toxic("reset_peer", up, `"timeout":3`, time.Second)},
		{group: group, fault: "reset while answering", long: 20, do: toxic("reset_peer", down, `"timeout":3`, time.Second)},
		{group: group, fault: "cut after some bytes of a request", long: 40, do: func(r *room) {
			r.door.toxic("limit_data", up, fmt.Sprintf(`"bytes":%d`, 1+r.rng.IntN(3000)))
			r.meanwhile(time.Second)
			r.door.clean()
		}},
		{group: group, fault: "cut after some bytes of an answer", short: 1, long: 40, do: func(r *room) {
			r.door.toxic("limit_data", down, fmt.Sprintf(`"bytes":%d`, 1+r.rng.IntN(600)))
			r.meanwhile(time.Second)
			r.door.clean()
		}},
		{group: group, fault: "bytes come one by one", long: 20, do: toxic("slicer", down, `"average_size":1,"size_variation":0,"delay":50`, time.Second)},
		{group: group, fault: "answers lost, requests stored", short: 1, long: 40, do: func(r *room) {
			r.door.set(answered(r.door))
			r.meanwhile(time.Second)
			r.door.set(nil)
		}},
		{group: group, fault: "requests in another order", short: 1, long: 40, do: func(r *room) {
			r.door.set(late(r.rng, 400*time.Millisecond))
			r.meanwhile(time.Second)
			r.door.set(nil)
		}},
		{group: group, fault: "each request twice", long: 20, do: func(r *room) {
			r.door.set(func(_ http.ResponseWriter, _ *http.Request, pass func()) { pass() })
			r.meanwhile(time.Second)
			r.door.set(nil)
		}},
	})
}

// meanwhile has lines written for some time, and asks in the middle what is reported.
func (r *room) meanwhile(d time.Duration) {
	r.t.Helper()
	for begin := time.Now(); time.Since(begin) < d; {
		r.write(1)
		r.soon(60 * time.Millisecond)
	}
	r.tell()
	r.write(1)
}

// TestAnswers: a server, or what stands before it, answers what it should not.
func TestAnswers(t *testing.T) {
	t.Parallel()
	var all []row
	for _, class := range []struct {
		name     string
		from, to int
	}{{"2xx with a page", 200, 299}, {"3xx", 300, 399}, {"4xx", 400, 499}, {"5xx", 500, 599}} {
		statuses := known(class.from, class.to)
		all = append(all, row{group: "answers", fault: "status " + class.name, short: 1, long: 2 * len(statuses), do: func(r *room) {
			status := statuses[r.out.Runs%len(statuses)]
			r.answers(respond(status, "text/html", fmt.Sprintf("<html>%d</html>", status), "Location", "/elsewhere"))
		}})
	}
	const JSON, HTML = "application/json", "text/html"
	for _, a := range []struct {
		name  string
		fault fault
	}{
		{"captive portal: every page is its own", respond(200, HTML, "<html><h1>Welcome to the hotel</h1></html>")},
		{"captive portal: sent to its login", respond(302, HTML, "", "Location", "http://127.0.0.1:9/login")},
		{"captive portal: 511", respond(511, HTML, "<html>log in</html>")},
		{"an empty 200", respond(200, JSON, "")},
		{"success false", respond(200, JSON, `{"success":false}`)},
		{"success without a count", respond(200, JSON, `{"success":true}`)},
		{"success with a count too high", respond(200, JSON, `{"success":true,"entries_stored":999999}`)},
		{"half an answer", respond(200, JSON, `{"success":true,"entries_st`)},
		{"an answer of 64 MB", respond(200, JSON, `{"success":true,"entries_stored":1,"x":"`+strings.Repeat("x", 64<<20))},
		{"a header of 900 KB", respond(200, JSON, `{}`, "X-Much", strings.Repeat("y", 900<<10))},
		{"an answer that never ends", endless},
	} {
		all = append(all, row{group: "answers", fault: a.name, long: 12, do: func(r *room) { r.answers(a.fault) }})
	}
	year := respond(503, JSON, `{}`, "Retry-After", "31536000")
	all = append(all, row{group: "answers", fault: "Retry-After of a year, ended by `ccship sync`", long: 12, do: func(r *room) {
		r.answers(year)
		r.ccship("sync")
	}})
	rows(t, all)
}

// answers has every request answered by f until the daemon has asked some times.
func (r *room) answers(f fault) {
	r.t.Helper()
	r.door.set(f)
	for range 3 {
		r.write(2)
		asked := r.door.count()
		kit.Within(700*time.Millisecond, func() bool { return r.door.count() > asked })
	}
	r.tell()
	r.door.set(nil)
}

// known is every status that has a name, of a class, and some that proxies invented.
func known(from, to int) (statuses []int) {
	invented := " 299 419 420 440 444 449 450 460 463 494 495 496 497 498 499 509 520 521 522 523 524 525 526 527 529 530 598 599 "
	for status := from; status <= to; status++ {
		if http.StatusText(status) != "" || strings.Contains(invented, " "+strconv.Itoa(status)+" ") {
			statuses = append(statuses, status)
		}
	}
	return statuses
}

// endless answers one byte now and then, for as long as a client reads.
func endless(w http.ResponseWriter, r *http.Request, _ func()) {
	w.Header().Set("Content-Type", "application/json")
	for {
		if _, err := w.Write([]byte(" ")); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}
