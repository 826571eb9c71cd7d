//go:build linux

package beside

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// agentsview is the other program, as its own build made it.
type agentsview struct{ path, base string }

func (*agentsview) name() string { return "agentsview" }

func (p *agentsview) start(t *testing.T, home string) (*kit.Process, func() bool) {
	t.Helper()
	_, port, err := net.SplitHostPort(address(t))
	must(t, err)
	p.base = "http://127.0.0.1:" + port
	cmd := exec.Command(p.path, "serve", "--no-browser", "--no-update-check", "--port", port)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TELEMETRY_ENABLED=0", "AGENTSVIEW_TELEMETRY_ENABLED=0"}
	process := kit.Launch(t, cmd)
	return process, func() bool { return strings.Contains(process.Log.String(), "listening at") }
}

// answer is the body of a good one.
func answer(r *http.Request) ([]byte, error) {
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.300s", r.URL, a.Status, text)
	}
	return text, err
}

func (p *agentsview) get(path string) ([]byte, error) {
	r, err := http.NewRequest(http.MethodGet, p.base+path, nil)
	if err != nil {
		return nil, err
	}
	return answer(r)
}

func (*agentsview) stored(home string) []string {
	all, err := filepath.Glob(filepath.Join(home, ".agentsview", "sessions.db*"))
	if err != nil {
		return nil
	}
	return all
}

// searches are the search of its page, and the one of all contents with every session included.
func (p *agentsview) searches() map[string]func(string) []string {
	all := url.Values{"include_children": {"true"}, "include_automated": {"true"}, "include_one_shot": {"true"}}
	return map[string]func(string) []string{
		"search": func(phrase string) []string {
			return p.pages("/api/v1/search", url.Values{"q": {`"` + phrase + `"`}})
		},
		"content": func(phrase string) []string {
			q := url.Values{"pattern": {phrase}, "mode": {"substring"}}
			for name, value := range all {
				q[name] = value
			}
			return p.pages("/api/v1/search/content", q)
		},
	}
}

func (p *agentsview) pages(path string, q url.Values) (ids []string) {
	type hit struct {
		ID string `json:"session_id"`
	}
	q.Set("limit", "500")
	for cursor := 0; ; {
		var page struct {
			Results, Matches []hit
			Next             int
			NextCursor       int `json:"next_cursor"`
		}
		q.Set("cursor", strconv.Itoa(cursor))
		text, err := p.get(path + "?" + q.Encode())
		if err != nil || json.Unmarshal(text, &page) != nil {
			return ids
		}
		for _, h := range append(page.Results, page.Matches...) {
			ids = append(ids, h.ID)
		}
		if cursor = max(page.Next, page.NextCursor); cursor == 0 || len(ids) > 100_000 {
			return ids
		}
	}
}

func (p *agentsview) cost(t *testing.T) float64 {
	t.Helper()
	text, err := p.get("/api/v1/usage/summary?from=2020-01-01&to=2030-01-01")
	must(t, err)
	var sums struct {
		Totals struct {
			TotalCost struct{ Microdollars float64 }
		}
	}
	must(t, json.Unmarshal(text, &sums))
	return sums.Totals.TotalCost.Microdollars / 1e6
}

func (p *agentsview) list(*testing.T) (address, login, shown string) {
	return p.base + "/", "", `document.querySelectorAll("[class*=session-item], [class*=session-row], [data-session-id]").length > 5`
}
