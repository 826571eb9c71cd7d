package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/service"
)

func (p *cli) newUninstall() *cobra.Command {
	return serviceVerb("uninstall", "Stop the service and remove it; the store stays",
		func(c *cobra.Command, s *service.Service) error {
			r, err := s.Uninstall(c.Context())
			if err != nil {
				return err
			}
			if !r.Was {
				return term.Printf(c.OutOrStdout(), "ccship-server was not installed as a service\n")
			}
			for _, path := range r.Removed {
				term.Printf(c.OutOrStdout(), "removed %s\n", path)
			}
			return term.Printf(c.OutOrStdout(), "the service is stopped and removed; what it stored stays\n")
		})
}

func (p *cli) newStart() *cobra.Command {
	return serviceVerb("start", "Start the installed service", func(c *cobra.Command, s *service.Service) error {
		if err := s.Start(c.Context()); err != nil {
			return err
		}
		at, err := awaitServer(c.Context(), s, p.store)
		if err == nil {
			err = term.Printf(c.OutOrStdout(), "ccship-server answers at %s\n", at.URL)
		}
		return err
	})
}

func (p *cli) newStop() *cobra.Command {
	return serviceVerb("stop", "Stop the service until the next login or start",
		func(c *cobra.Command, s *service.Service) error {
			if err := s.Stop(c.Context()); err != nil {
				return err
			}
			return term.Printf(c.OutOrStdout(), "stopped; nothing is lost: daemons keep what is new until it runs again\n")
		})
}

// serviceVerb returns a command about the installed service.
func serviceVerb(use, short string, do func(*cobra.Command, *service.Service) error) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := serverService(&serveFlags{}, []string{"serve"})
			if err == nil {
				err = do(c, s)
			}
			if e, ok := errors.AsType[*control.Error](err); ok {
				return noService(e, []string{"serve"})
			}
			return err
		},
	}
}

func (p *cli) newStatus() *cobra.Command {
	c := serviceVerb("status", "Show whether the service runs, and where its server answers",
		func(c *cobra.Command, s *service.Service) error {
			r, err := examine(c.Context(), s, p.store)
			if err != nil {
				return err
			}
			if p.json {
				err = printJSON(c.OutOrStdout(), r)
			} else {
				err = r.print(c.OutOrStdout())
			}
			if err == nil && !r.Answers {
				return silent{errors.New("the server does not answer")}
			}
			return err
		})
	c.Long = "Show whether the service is installed and runs, and where the server of the store answers. With cold " +
		"storage, also what is there and what is still in the database. Exit code 1 while no server answers."
	printsJSON(c)
	return c
}

// serverReport is what status says.
type serverReport struct {
	Schema    int    `json:"schema_version"`
	Manager   string `json:"manager"`
	Installed bool   `json:"installed"`
	Running   bool   `json:"running"` // the service; another process may serve
	PID       int    `json:"pid,omitempty"`
	Unit      string `json:"unit,omitempty"`
	Note      string `json:"note,omitempty"`
	Store     string `json:"store"`
	URL       string `json:"url,omitempty"` // where the store is served, or was last
	Public    string `json:"public_url,omitempty"`
	Answers   bool   `json:"answers"`

	Cold *coldReport `json:"cold,omitempty"`
}

func examine(ctx context.Context, s *service.Service, store string) (serverReport, error) {
	st, err := s.Status(ctx)
	if err != nil {
		return serverReport{}, err
	}
	r := serverReport{
		Schema: schemaVersion, Manager: st.Manager, Installed: st.Installed, Running: st.Running, PID: st.PID,
		Unit: st.UnitPath, Note: st.Note, Store: redact(store),
	}
	if at, ok := lastServed(store); ok {
		r.URL, r.Public, r.Answers = at.URL, at.Public, answers(ctx, at.URL)
	}
	r.Cold = examineCold(ctx, store)
	return r, nil
}

func (r serverReport) print(w io.Writer) error {
	state := "not installed; `ccship-server install` installs and starts it"
	switch {
	case r.Manager == service.None:
		state = r.Note
	case r.Running:
		state = fmt.Sprintf("running (pid %d)", r.PID)
	case r.Installed && r.Note != "":
		state = "stopped: " + r.Note
	case r.Installed:
		state = "stopped; `ccship-server start` starts it"
	}
	at := "none yet: no server has used this store"
	if r.URL != "" {
		at = r.URL + " (no answer)"
		if r.Answers {
			at = r.URL + " (answers)"
		}
	}
	term.Printf(w, "service  %s\naddress  %s\n", state, at)
	if r.Public != "" {
		term.Printf(w, "browser  %s\n", r.Public)
	}
	err := term.Printf(w, "store    %s\n", r.Store)
	if r.Cold != nil {
		err = r.Cold.print(w)
	}
	if r.Unit != "" {
		err = term.Printf(w, "unit     %s\n", r.Unit)
	}
	return err
}

// startTime is how long a server may take from its start to its first answer: it may bring its store up to date.
const startTime = 60 * time.Second

// awaitServer waits until the server of a store answers.
func awaitServer(ctx context.Context, s *service.Service, store string) (served, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if at, ok := lastServed(store); ok && answers(ctx, at.URL) {
			return at, nil
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		why := "the service was started, but its server does not answer"
		if st, err := s.Status(context.WithoutCancel(ctx)); err == nil && st.Note != "" {
			why += ": " + st.Note
		}
		hint := "`ccship-server status` shows its state"
		if argv, err := s.LogCommand(50, false); err == nil {
			hint = "`" + strings.Join(argv, " ") + "` says why"
		}
		return served{}, hinted{errors.New(why), hint}
	}
}

// answers says whether a server answers at an address of this machine. Over TLS it only connects: the certificate is
// for the server's public name.
func answers(ctx context.Context, at string) bool {
	u, err := url.Parse(at)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	network, address := "tcp", u.Host
	if u.Scheme == "unix" {
		network, address = "unix", u.Path
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	if u.Scheme == "https" {
		conn, err := dial(ctx, "", "")
		return err == nil && conn.Close() == nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/healthz", nil)
	if err != nil {
		return false
	}
	response, err := (&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	var said struct{ OK bool }
	return json.NewDecoder(response.Body).Decode(&said) == nil && said.OK
}

// sayLinger says what keeps the service running while nobody is logged in.
func sayLinger(c *cobra.Command, s *service.Service) {
	if st, err := s.Status(c.Context()); err == nil && st.LingerHint() != "" {
		term.Printf(c.ErrOrStderr(), "%s\n", st.LingerHint())
	}
}
