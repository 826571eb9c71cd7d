package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/delivery"
	"github.com/ccship/ccship/internal/amount"
)

// chosen is the server that setup saves.
type chosen struct {
	server, key string
	usable      bool // it answers and accepts the key; if not, the user wants it all the same
	own         bool // it is this user's, on this machine
}

// connect settles server and key: from flags, from the user at the terminal, or as they were.
func (s *setup) connect(ctx context.Context, c *config.Config) (chosen, error) {
	given := s.ask == nil || c.OriginOf("server_url") == config.FromFlag || s.local
	for {
		server, key, err := s.server(ctx, c, given)
		if err != nil {
			return chosen{}, err
		}
		own := key != ""
		if !own {
			if key, err = s.key(ctx, *c); err != nil {
				return chosen{}, err
			}
		}
		done, err := s.check(ctx, c, server, key)
		done.own = own
		if _, declined := errors.AsType[declinedError](err); given || !declined {
			return done, err
		}
	}
}

// server returns the address to use, and its key if setup has made one. given: nobody is asked for the address.
func (s *setup) server(ctx context.Context, c *config.Config, given bool) (server, key string, err error) {
	if given && !s.local {
		if c.ServerURL == "" {
			return "", "", control.Usage("no server address given",
				"run `ccship setup --server-url https://ccship.example.org --key-file FILE`, or `ccship setup --local` "+
					"for a server on this machine")
		}
		return c.ServerURL, "", nil
	}
	here := s.findLocal(ctx)
	if s.local {
		return s.useLocal(ctx, c, here)
	}
	preset, question := c.ServerURL, "server address"
	switch {
	case preset == "" && here.url != "":
		s.app.Say("found a server on this machine")
		preset = here.url
	case preset == "" && here.program != "" && here.manager:
		question = "server address (empty: start a server on this machine)"
	case preset == "" && here.program != "":
		s.app.Say("no server answers on this machine, and there is no service manager to start one with; to use one here, " +
			"start `ccship-server serve` in another terminal, then run `ccship setup` again")
	}
	for {
		text, err := s.ask.Line(ctx, question, preset)
		switch {
		case err != nil:
			return "", "", err
		case text == "" && question != "server address", text != "" && text == here.url && here.own:
			return s.useLocal(ctx, c, here)
		case text == "":
			s.app.Say("enter where your server answers, such as ccship.example.org or 192.168.0.7:5000")
			continue
		}
		url, err := config.NormalizeURL(withScheme(ctx, text))
		if err != nil {
			show.PrintError(s.app.Stderr, show.Describe(err))
			continue
		}
		if use, err := s.answers(ctx, c, url); use || err != nil {
			return url, "", err
		}
	}
}

// answers says whether to go on with a server: one answers there, or it is wanted all the same. Nobody has to look
// for a key before that.
func (s *setup) answers(ctx context.Context, c *config.Config, url string) (bool, error) {
	greeting, cancel := context.WithTimeout(ctx, greetTime)
	there, _ := delivery.Greet(greeting, url)
	cancel()
	if there || s.evenIfBad {
		return true, nil
	}
	_, err := delivery.Probe(ctx, delivery.CandidateOf(c, url, ""))
	problem := show.Describe(err)
	if err == nil || problem.Code != control.CodeUnreachable {
		return true, ctx.Err() // it is slow; what else is wrong depends on the key
	}
	show.PrintError(s.app.Stderr, problem)
	wanted, err := s.ask.Yes(ctx, "save this address anyway?", false)
	s.evenIfBad = wanted
	return wanted, err
}

// completeURL puts the scheme before --server-url, where it was left out.
func (s *setup) completeURL(ctx context.Context) error {
	f := s.app.Flags.Lookup("server-url")
	if f == nil || !f.Changed {
		return nil
	}
	return s.app.Flags.Set("server-url", withScheme(ctx, f.Value.String()))
}

// greetTime is how long a server may take to say that it is one.
const greetTime = 2 * time.Second

// withScheme returns an address as it is written in the configuration. People leave the scheme out of HOST:PORT; it is
// the one under which a server answers.
func withScheme(ctx context.Context, text string) string {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "://") || strings.Contains(text, "@") || !strings.ContainsAny(text, ".:") {
		return text
	}
	schemes := []string{"https", "http"}
	if u, err := url.Parse("http://" + text); err == nil && onThisMachine(u.Hostname()) {
		schemes = []string{"http", "https"}
	}
	for _, scheme := range schemes {
		greeting, cancel := context.WithTimeout(ctx, greetTime)
		there, _ := delivery.Greet(greeting, scheme+"://"+text)
		cancel()
		if there {
			return scheme + "://" + text
		}
	}
	return schemes[0] + "://" + text
}

// onThisMachine says whether a host is a loopback address.
func onThisMachine(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// key returns the key to keep; the one that is there already, else none, when nobody names another.
func (s *setup) key(ctx context.Context, c config.Config) (string, error) {
	switch {
	case s.keyFile == "-":
		return readKey()
	case s.keyFile != "":
		return config.ReadAPIKey(s.keyFile)
	}
	old, err := config.ReadAPIKey(c.APIKeyFile)
	if err != nil && show.Exists(c.APIKeyFile) {
		return "", err
	}
	if s.ask == nil {
		return old, nil
	}
	question := "API key (empty: none)"
	if old != "" {
		question = "API key (empty: keep the one in " + c.APIKeyFile + ")"
	}
	text, err := s.ask.Secret(ctx, question)
	if err != nil || text == "" {
		return old, err
	}
	return config.CheckAPIKey("the key", text)
}

// declinedError ends an attempt whose server or key the user does not want to keep. It has been printed.
type declinedError struct{ show.SilentError }

func (e declinedError) Unwrap() error { return e.SilentError }

// check asks the server, and asks again for a key that it rejects.
func (s *setup) check(ctx context.Context, c *config.Config, server, key string) (chosen, error) {
	for {
		found, err := delivery.Probe(ctx, delivery.CandidateOf(c, server, key))
		if err == nil {
			what := "a plain server: lines will be acknowledged, not proven"
			if s.plain = !found.Extension; found.Extension {
				what = "it is a ccship-server: every byte can be proven"
			}
			s.app.Say("%s answers and accepts the key; %s", server, what)
			return chosen{server: server, key: key, usable: true}, nil
		}
		if ctx.Err() != nil {
			return chosen{}, ctx.Err()
		}
		problem := show.Describe(err)
		if s.ask == nil || s.evenIfBad {
			return s.despite(server, key, problem)
		}
		show.PrintError(s.app.Stderr, problem)
		if problem.Code == control.CodeRefusedKey && s.keyFile == "" {
			text, err := s.ask.Secret(ctx, "API key (empty: no other)")
			if err != nil {
				return chosen{}, err
			}
			if text, err = config.CheckAPIKey("the key", text); err == nil {
				key = text
				continue
			}
		}
		keep, err := s.ask.Yes(ctx, "save server and key anyway?", false)
		if err == nil && !keep {
			err = declinedError{show.SilentError{Code: show.ExitCode(problem)}}
		}
		return chosen{server: server, key: key}, err
	}
}

// despite saves a server that cannot be used now if --force says so.
func (s *setup) despite(server, key string, problem *control.Error) (chosen, error) {
	if !s.evenIfBad {
		problem.Hint += "; --force saves server and key anyway"
		return chosen{}, problem
	}
	s.app.Say("%s; saved anyway", term.OneLine(problem.Message))
	return chosen{server: server, key: key}, nil
}

// sweepSoon is how far ahead the first sentences look for what Claude Code will delete.
const sweepSoon = 7 * 24 * time.Hour

// readKey reads a key from standard input.
func readKey() (string, error) {
	text, err := io.ReadAll(io.LimitReader(os.Stdin, 64<<10))
	if err != nil {
		return "", fmt.Errorf("read API key: %w", err)
	}
	return config.CheckAPIKey("standard input", string(text))
}

// saved returns what setup ends with: what is safe now, and what would have been lost soon.
func (s *setup) saved(c config.Config, status control.Status, r control.SyncResult) string {
	var b strings.Builder
	kept, err := config.Expiring(c.Roots, sweepSoon, time.Now())
	switch {
	case status.Files == nil || status.Files.Tracked == 0:
		fmt.Fprintf(&b, "no conversations yet in %s; the first will be delivered as it is written\n",
			strings.Join(c.Roots, ", "))
	case status.Files.Sessions == 1:
		fmt.Fprintf(&b, "the 1 session (%s) is on your server", amount.Size(status.Files.Bytes))
	default:
		fmt.Fprintf(&b, "all %s (%s) are on your server",
			amount.Counted(int64(status.Files.Sessions), "session", "sessions"), amount.Size(status.Files.Bytes))
	}
	if status.Files != nil && status.Files.Tracked > 0 {
		if err == nil && kept.Expiring > 0 {
			fmt.Fprintf(&b, "; Claude Code would have deleted %s of them within 7 days", amount.Count(int64(kept.Expiring)))
		}
		b.WriteString("\n")
	}
	b.WriteString(show.LeftOut(r))
	for i, other := range status.Servers {
		if i > 0 && other.Batches > 0 {
			fmt.Fprintf(&b, "  %s for the retired server %s\n",
				amount.Counted(other.Batches, "batch still waits", "batches still wait"), other.URL)
		}
	}
	b.WriteString("every new line follows as it is written; `ccship status` shows the progress\n")
	return b.String()
}

// tellHowToRun ends a setup without a service. A running daemon starts to use the server at once. Without one, it says
// what there is to save, and how.
func (s *setup) tellHowToRun(ctx context.Context, t *theService) error {
	if client, status, err := control.Reach(ctx, t.sockets()); err == nil && show.SamePath(status.Config, t.config.Path) {
		if _, err := client.Reload(ctx); err != nil {
			return err
		}
		return s.app.Tell(fmt.Sprintf("the running daemon (pid %d) delivers there from now on; "+
			"`ccship status` shows the progress\n", status.PID))
	}
	kept, err := config.Expiring(t.config.Roots, sweepSoon, time.Now())
	if err != nil {
		s.app.Say("not everything could be counted: %v", err)
	}
	if kept.Sessions > 0 {
		s.app.Say("%s (%s) can be saved; Claude Code deletes %s within 7 days",
			amount.Counted(int64(kept.Sessions), "session", "sessions"), amount.Size(kept.Bytes), noneOr(kept.Expiring))
	}
	how := "ccship run"
	if t.config.Path != "" && s.app.Flags.Changed("config") {
		how += " --config " + filepath.Clean(t.config.Path)
	}
	if s.manager {
		return s.app.Tell("ready; deliver with `" + how + "`, or as a service with `ccship service install`\n")
	}
	return s.app.Tell("ready; there is no service manager here, so start ccship yourself: `" + how +
		"` in a terminal that " +
		"stays open,\n  or `nohup " + how + " >/dev/null 2>&1 &`; in a container make it part of the start command\n")
}

func noneOr(n int) string {
	if n == 0 {
		return "none of them"
	}
	return amount.Count(int64(n)) + " of them"
}
