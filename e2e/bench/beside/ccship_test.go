//go:build linux

package beside

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// ccship is `ccship up`: the daemon and ccship-server.
type ccship struct {
	home, base, key, link string
	program               string
}

func (*ccship) name() string { return "ccship" }

// own is where `ccship up` keeps everything.
func (p *ccship) own() string { return filepath.Join(p.home, ".local", "state", "ccship", "up") }

// address is a free one on loopback.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

func (p *ccship) command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.program, args...)
	cmd.Env = []string{"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "XDG_RUNTIME_DIR=" + p.home}
	return cmd
}

var ticket = regexp.MustCompile(`http://\S+/login\?ticket=\S+`)

func (p *ccship) start(t *testing.T, home string) (*kit.Process, func() bool) {
	t.Helper()
	p.home, p.program = home, kit.Program(t, "ccship")
	kit.Program(t, "ccship-server") // beside it
	listen := address(t)
	p.base = "http://" + listen
	process := kit.Launch(t, p.command("up", "--no-browser", "--listen", listen))
	return process, func() bool {
		if p.link = ticket.FindString(process.Log.String()); p.link == "" {
			return false
		}
		key, err := os.ReadFile(filepath.Join(p.own(), "api_key"))
		if err != nil {
			return false
		}
		p.key = strings.TrimSpace(string(key))
		var s struct {
			State  string
			Outbox struct{ Batches int }
		}
		out, err := p.command("status", "--json").Output()
		if err != nil || json.Unmarshal(out, &s) != nil || s.State != "watching" || s.Outbox.Batches > 0 {
			return false
		}
		metrics, err := p.get("/metrics")
		return err == nil && strings.Contains(string(metrics), "\nccship_server_derive_lag_streams 0\n")
	}
}

func (p *ccship) get(path string) ([]byte, error) {
	r, err := http.NewRequest(http.MethodGet, p.base+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-API-Key", p.key)
	return answer(r)
}

func (p *ccship) stored(string) []string {
	all, err := filepath.Glob(filepath.Join(p.own(), "server.db*"))
	if err != nil {
		return nil
	}
	return all
}

func (p *ccship) searches() map[string]func(string) []string {
	return map[string]func(string) []string{"search": func(phrase string) (ids []string) {
		var page struct {
			Hits []struct {
				Session struct {
					ID string `json:"session_id"`
				}
			}
			Next string
		}
		for after := ""; ; after = page.Next {
			page.Hits, page.Next = nil, ""
			text, err := p.get("/api/search?" + url.Values{"q": {`"` + phrase + `"`}, "limit": {"100"}, "after": {after}}.Encode())
			if err != nil || json.Unmarshal(text, &page) != nil {
				return ids
			}
			for _, h := range page.Hits {
				ids = append(ids, h.Session.ID)
			}
			if page.Next == "" {
				return ids
			}
		}
	}}
}

func (p *ccship) cost(t *testing.T) float64 {
	t.Helper()
	out, err := p.command("usage", "--json").Output()
	must(t, err)
	var sums struct {
		Total struct {
			Cost float64 `json:"cost_usd"`
		}
	}
	must(t, json.Unmarshal(out, &sums))
	return sums.Total.Cost
}

func (p *ccship) list(*testing.T) (address, login, shown string) {
	return p.base + "/", p.link, `document.querySelectorAll(".row").length > 5`
}
