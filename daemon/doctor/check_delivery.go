package doctor

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/internal/service"
)

func checkServer(ctx context.Context, x *exam) []Finding {
	if x.o.ConfigErr != nil {
		return nil
	}
	server := x.o.Config.ServerURL
	if server == "" {
		if r := x.daemon(); len(r.status.Servers) > 0 {
			return fine("the daemon uses " + r.status.Servers[0].URL)
		}
		return []Finding{{Level: Warn, Text: "no server is set: nothing is sent", Fix: "`ccship setup`"}}
	}
	p := x.server()
	if !p.keyed && codeOf(p.err) == control.CodeRefusedKey && exists(x.o.Config.APIKeyFile) {
		return nil // checkKey reports the key
	}
	if p.err != nil {
		return []Finding{unusable(ctx, server, p)}
	}
	if !p.kind.Extension {
		return []Finding{{Level: Note, Text: server + " is a plain server: lines are acknowledged, not proven",
			Detail: "lines that are not JSON objects are not sent to it"}}
	}
	text := fmt.Sprintf("%s is a ccship-server and accepts the key", server)
	if p.kind.Version != "" {
		text += ", version " + p.kind.Version
	}
	return fine(text)
}

// unusable returns the finding that a server cannot be used.
func unusable(ctx context.Context, server string, p probed) Finding {
	f := explained(Fail, p.err)
	if ctx.Err() != nil {
		f.Text = fmt.Sprintf("the server at %s does not answer (waited %s)", server, timeLimit)
	}
	_, address, _ := strings.Cut(server, "://")
	for _, known := range []struct{ words, fix string }{
		{"certificate signed by unknown authority",
			"make this system trust the authority that issued its certificate, or use another server"},
		{"certificate is not trusted", "make this system trust the authority that issued its certificate, or use another " +
			"server"},
		{"certificate has expired", "renew the server's certificate; if it is current, set this machine's clock"},
		{"is not yet valid", "set this machine's clock, or check the server's certificate"},
		{"certificate is valid for", "use the name in its certificate: `ccship config server_url URL`"},
		{"cannot validate certificate for", "use the name in its certificate: `ccship config server_url URL`"},
		{"server gave HTTP response to HTTPS client", "it uses http: `ccship config server_url http://" +
			address + "`"},
		{"no such host", "check the name in server_url, and this machine's DNS"},
		{"connection refused", "start the server, or check the port in server_url"},
	} {
		if strings.Contains(p.err.Error(), known.words) {
			f.Fix = known.fix
			break
		}
	}
	if proxy := proxyFor(server); proxy != "" {
		f.Detail = "through the proxy " + proxy
	}
	return f
}

// proxyFor returns the proxy that this process's environment sets for a server, without its password; "": none.
func proxyFor(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	if err != nil || proxy == nil {
		return ""
	}
	return proxy.Redacted()
}

// checkProxy finds a proxy that is set only in this shell.
func checkProxy(_ context.Context, x *exam) []Finding {
	proxy := proxyFor(x.o.Config.ServerURL)
	if proxy == "" || !x.installed() || x.ownServer().State == "ok" {
		return nil
	}
	scheme, _, _ := strings.Cut(x.o.Config.ServerURL, "://")
	name := strings.ToUpper(scheme) + "_PROXY"
	f := Finding{
		Level: Warn, Text: "this shell reaches the server through " + proxy + "; the service does not use that proxy",
		Fix: "set " + name + " in the service's environment, then `ccship service restart`",
	}
	if x.service().status.Manager == service.SystemdUser {
		f.Fix = "`systemctl --user edit ccship`: add [Service] and Environment=" + name + "=…; then `ccship service restart`"
	}
	return []Finding{f}
}

// ownServer returns how the daemon sees the user's own server.
func (x *exam) ownServer() control.Server {
	for _, s := range x.daemon().status.Servers {
		if s.URL == x.o.Config.ServerURL {
			return s
		}
	}
	return control.Server{}
}

// skewLimit is how far the clocks may differ.
const skewLimit = 5 * time.Second

// checkClock compares this machine's clock with the server's, and with the times of the transcripts.
func checkClock(_ context.Context, x *exam) []Finding {
	fix := "set the clock that is wrong"
	if runtime.GOOS == "linux" {
		fix = "`sudo timedatectl set-ntp true`, or set the clock that is wrong"
	}
	var found []Finding
	p := x.server()
	if s := p.kind.Skew; s > skewLimit {
		found = append(found, Finding{Level: Warn, Text: "this machine's clock is " + amount.Duration(s) +
			" behind the server's", Fix: fix})
	} else if s < -skewLimit {
		found = append(found, Finding{Level: Warn, Text: "this machine's clock is " + amount.Duration(-s) +
			" ahead of the server's", Fix: fix})
	}
	if d := x.retention(); d.Future > 0 {
		found = append(found, Finding{Level: Warn, Text: amount.Counted(int64(d.Future), "transcript was",
			"transcripts were") + " changed in the future, according to this machine's clock",
			Detail: "Claude Code deletes such a file later, and its changes may be found later", Fix: fix})
	}
	if len(found) == 0 && p.err == nil && x.o.Config.ServerURL != "" && x.o.ConfigErr == nil {
		return fine("agrees with the server's")
	}
	return found
}

// checkDelivery finds servers that the daemon cannot deliver to, unless checkServer already reports why.
func checkDelivery(_ context.Context, x *exam) []Finding {
	var found []Finding
	for _, s := range x.daemon().status.Servers {
		own := s.URL == x.o.Config.ServerURL && x.o.ConfigErr == nil
		if s.State != "retrying" && s.State != "refused" || own && x.server().err != nil || !own && s.Batches == 0 {
			continue
		}
		f := Finding{Level: Warn, Text: "the daemon cannot deliver to " + s.URL + " (" + strings.ReplaceAll(s.Kind, "_",
			" ") + ")", Detail: s.Detail, Fix: s.Hint}
		if s.State == "refused" {
			f.Level = Fail
		}
		if s.Kind == "" && s.Detail != "" { // it is not about requests: to send again does not help
			f.Text, f.Detail, own = "the daemon does not deliver to "+s.URL+": "+s.Detail, "", false
		}
		if own {
			f.Text += ", although it works from here"
			f.Fix = syncCommand
			if x.daemon().status.Pause == nil {
				f = f.safely(phaseDelivery, x.sync)
			}
		}
		found = append(found, f)
	}
	return found
}

// When a queue is a finding.
const (
	oldest  = time.Hour // the age of the first entry
	muchCap = 50        // percent of the cap
)

func checkOutbox(_ context.Context, x *exam) []Finding {
	s := x.daemon().status
	if s.Outbox == nil {
		return nil
	}
	var found []Finding
	sync := func(f Finding) Finding {
		f.Fix = syncCommand
		if s.Pause != nil { // a sync would end the pause
			f.Fix = "`ccship unpause`"
			return f
		}
		return f.safely(phaseDelivery, x.sync)
	}
	percent := 0
	if s.Outbox.Cap > 0 {
		percent = int(100 * s.Outbox.Stored / s.Outbox.Cap)
	}
	for _, n := range s.Advice {
		if n.Kind == "full" {
			found = append(found, Finding{Level: Fail, Text: n.Text, Detail: fmt.Sprintf("%d %% of outbox_cap is used",
				percent), Fix: n.Hint})
		}
	}
	if len(found) == 0 && percent >= muchCap {
		found = append(found, sync(Finding{Level: Warn,
			Text: fmt.Sprintf("the outbox is %d %% full; reading stops when it is full", percent)}))
	}
	if at := s.Outbox.OldestAt; at != nil && x.now.Sub(*at) > oldest {
		found = append(found, sync(Finding{Level: Warn, Text: amount.Counted(s.Outbox.Entries, "entry waits",
			"entries wait") + ", the oldest for " + amount.Duration(x.now.Sub(*at))}))
	}
	if len(found) > 0 {
		return found
	}
	if s.Outbox.Entries == 0 {
		return fine("empty")
	}
	return fine(amount.Counted(s.Outbox.Entries, "entry is", "entries are") + " on the way")
}

func checkDead(_ context.Context, x *exam) []Finding {
	if o := x.daemon().status.Outbox; o != nil && o.Dead > 0 {
		return []Finding{{Level: Warn, Text: "the server rejects " + amount.Counted(o.Dead, "entry", "entries"),
			Detail: "they are kept; `ccship outbox list --dead` shows why", Fix: "`ccship outbox retry --all` sends them again"}}
	}
	return nil
}

func checkPause(_ context.Context, x *exam) []Finding {
	p := x.daemon().status.Pause
	if p == nil {
		return nil
	}
	text := "you paused delivery " + amount.Ago(x.now, p.Since)
	if p.Until != nil {
		text += "; it resumes in " + amount.Duration(p.Until.Sub(x.now))
	}
	return []Finding{{Level: Warn, Text: text, Fix: "`ccship unpause`"}}
}

func checkWithheld(_ context.Context, x *exam) []Finding {
	if o := x.daemon().status.Outbox; o != nil && o.Withheld > 0 {
		return []Finding{{Level: Note, Text: amount.Counted(o.Withheld, "entry was", "entries were") +
			" withheld from a plain server", Detail: "only ccship-server accepts them"}}
	}
	return nil
}

func checkExcluded(_ context.Context, x *exam) []Finding {
	if f := x.daemon().status.Files; f != nil && f.Excluded > 0 {
		return []Finding{{Level: Note, Text: amount.Counted(int64(f.Excluded), "transcript is", "transcripts are") +
			" left out: excluded, forgotten, or opted out by their projects", Fix: "`ccship exclude` shows why"}}
	}
	return nil
}

// checkAdvice passes on the daemon's advice that no other check covers.
func checkAdvice(_ context.Context, x *exam) []Finding {
	var found []Finding
	for _, n := range x.daemon().status.Advice {
		switch n.Kind {
		case "config", "restart", "full", "dead_letters", "unreadable", "state_corrupt", "elsewhere":
			continue // other checks cover these
		}
		found = append(found, Finding{Level: Warn, Text: strings.TrimSuffix(n.Text, "."), Fix: n.Hint})
	}
	return found
}
