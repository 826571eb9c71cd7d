package setup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/cli"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/delivery"
	"github.com/ccship/ccship/daemon/service"
)

// setup is one run of `ccship setup`.
type setup struct {
	app verbs
	ask *term.Asker // nil: nobody answers

	keyFile              string
	keyStdin             bool
	noImport             bool
	install, noInstall   bool
	assumeYes, evenIfBad bool
}

func (a verbs) setupCommand() *cobra.Command {
	s := &setup{app: a}
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Connect to your server: save its address and key, install the service, import everything",
		Long: "Ask for the server's address and key, check both, save them in the configuration, install the service, and " +
			"wait until every conversation is imported. Values given by flags are not asked for; without a terminal nothing " +
			"is asked. Running it again changes the values you give and keeps the rest.",
		Example: "  ccship setup\n  ccship setup --server-url https://ccship.example.org --key-file key --yes",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := cli.UntilSignal(cmd.Context())
			defer stop()
			for _, both := range [][2]string{{"key-file", "key-stdin"}, {"install", "no-install"}} {
				if cmd.Flags().Changed(both[0]) && cmd.Flags().Changed(both[1]) {
					return control.Usage("--"+both[0]+" and --"+both[1]+" cannot be combined",
						"leave one of them out")
				}
			}
			if !s.assumeYes && !s.keyStdin {
				s.ask = term.NewAsker(a.Stderr)
			}
			return s.run(ctx)
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.keyFile, "key-file", "", "take the server's key from this `file` (mode 0600)")
	f.BoolVar(&s.keyStdin, "key-stdin", false, "take the server's key from standard input")
	f.BoolVar(&s.noImport, "no-import", false, "do not start the service yet")
	f.BoolVar(&s.install, "install", false, "fail where the service cannot be installed")
	f.BoolVar(&s.noInstall, "no-install", false, "do not install the service")
	f.BoolVarP(&s.assumeYes, "yes", "y", false, "ask nothing: what is not given by flags stays as it is")
	f.BoolVar(&s.evenIfBad, "force", false,
		"save server and key even if the server cannot be reached or rejects the API key")
	return cmd
}

func (s *setup) run(ctx context.Context) error {
	t, err := s.app.service(which{})
	if err != nil {
		return err
	}
	server, key, err := s.answers(ctx, t.config)
	if err != nil {
		return err
	}
	usable, err := s.check(ctx, &t.config, server, key)
	if err != nil {
		return err
	}
	install, err := s.mayInstall(ctx, t)
	if err != nil {
		return err
	}
	values := []config.Value{{Name: "server_url", Value: server}}
	if err := config.WriteServer(t.config.Path, t.config.APIKeyFile, key, values); err != nil {
		return err
	}
	s.app.Say("saved in %s", t.config.Path)
	if !install {
		return s.tellHowToRun(ctx, t)
	}
	if t, err = s.app.service(which{}); err != nil { // as it is configured now
		return err
	}
	return s.bringUp(ctx, t, usable)
}

// answers are the server and its key: from flags, from whoever sits at the terminal, or as they were.
func (s *setup) answers(ctx context.Context, c config.Config) (server, key string, err error) {
	server = c.ServerURL
	if from := c.OriginOf("server_url"); s.ask != nil && from != config.FromFlag {
		if server, err = s.askServer(server); err != nil {
			return "", "", err
		}
	}
	if server == "" {
		return "", "", control.Usage("no server address given",
			"run `ccship setup --server-url https://ccship.example.org --key-file FILE`")
	}
	if ctx.Err() != nil {
		return "", "", ctx.Err()
	}
	key, err = s.key(c)
	return server, key, err
}

func (s *setup) askServer(preset string) (string, error) {
	for {
		text, err := s.ask.Line("server address", preset)
		if err != nil {
			return "", err
		}
		url, err := config.NormalizeURL(text)
		if err == nil {
			return url, nil
		}
		cli.PrintError(s.app.Stderr, cli.Describe(err))
	}
}

// key is the key to keep; the one that is there already, else none, when nobody names another.
func (s *setup) key(c config.Config) (string, error) {
	switch {
	case s.keyFile != "":
		return config.ReadAPIKey(s.keyFile)
	case s.keyStdin:
		return readKey()
	}
	old, err := config.ReadAPIKey(c.APIKeyFile)
	if err != nil && cli.Exists(c.APIKeyFile) {
		return "", err
	}
	if s.ask == nil {
		return old, nil
	}
	question := "API key (empty: none)"
	if old != "" {
		question = "API key (empty: keep the one in " + c.APIKeyFile + ")"
	}
	text, err := s.ask.Secret(question)
	if err != nil || text == "" {
		return old, err
	}
	return config.CheckAPIKey("the key", text)
}

// check asks the server. usable is false if the person saves a server that cannot be used now.
func (s *setup) check(ctx context.Context, c *config.Config, server, key string) (usable bool, err error) {
	found, err := delivery.Probe(ctx, delivery.CandidateOf(c, server, key))
	if err == nil {
		what := "a plain server: lines will be acknowledged, not proven"
		if found.Extension {
			what = "it is a ccship-server: every byte can be proven"
		}
		s.app.Say("%s answers and accepts the key; %s", server, what)
		return true, nil
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	problem := cli.Describe(err)
	keep := s.evenIfBad
	if !keep && s.ask != nil {
		cli.PrintError(s.app.Stderr, problem)
		if keep, err = s.ask.Yes("save server and key anyway?", false); err != nil {
			return false, err
		}
		if !keep {
			return false, cli.SilentError{Code: cli.ExitCode(problem)}
		}
		return false, nil
	}
	if !keep {
		problem.Hint += "; --force saves server and key anyway"
		return false, problem
	}
	s.app.Say("%s; saved anyway", term.OneLine(problem.Message))
	return false, nil
}

// mayInstall says whether the service is to be installed, before anything is written.
func (s *setup) mayInstall(ctx context.Context, t *theService) (bool, error) {
	if s.noInstall {
		return false, nil
	}
	st, err := t.Status(ctx)
	if err == nil && st.Manager == service.None {
		_, err = t.Install(ctx, false) // says why, and does nothing else
	}
	if err == nil {
		err = t.foreign(ctx, st)
	}
	if err != nil {
		if !s.install && ctx.Err() == nil {
			cli.PrintError(s.app.Stderr, cli.Describe(err))
			return false, nil
		}
		return false, err
	}
	if s.ask == nil || s.install || st.Installed {
		return true, nil
	}
	return s.ask.Yes("install the service, which starts automatically from now on?", true)
}

// bringUp installs the service and waits for the import.
func (s *setup) bringUp(ctx context.Context, t *theService, usable bool) error {
	if s.ask != nil && !s.noImport {
		now, err := s.ask.Yes("import everything now?", true)
		if err != nil {
			return err
		}
		s.noImport = !now
	}
	before, err := t.Status(ctx)
	if err != nil {
		return err
	}
	if s.noImport {
		if _, _, err := s.app.install(ctx, t, false); err != nil {
			return err
		}
		return s.app.Print("installed; it starts at the next login, or with `ccship start`\n")
	}
	client, status, err := s.app.install(ctx, t, true)
	if err == nil && before.Running && status.PID == before.PID { // it was there before, and knows the old server
		if err = t.Restart(ctx); err == nil {
			client, status, err = t.answered(ctx)
		}
	}
	if err != nil {
		return err
	}
	s.app.Say("the service runs (pid %d)", status.PID)
	defer s.app.warnLinger(ctx, t)
	if !usable {
		return s.app.Print("the import begins when the server accepts it; `ccship status` shows that\n")
	}
	return s.waitForImport(ctx, t, client)
}

// importSlice is the time between two looks at whether a long import still makes progress.
const importSlice = 5 * time.Second

// waitForImport shows the import, and at its end what is on the server.
func (s *setup) waitForImport(ctx context.Context, t *theService, client *control.Client) error {
	var status control.Status
	result, err := s.app.ShowImport(ctx, client, importSlice, func(r control.SyncResult) bool {
		status, _ = client.Status(ctx) // without an answer it is not over
		return goesOn(r, status)
	})
	if errors.Is(err, context.Canceled) {
		s.app.Say("the import goes on without this command; `ccship status --watch` shows it")
	}
	if err != nil {
		return err
	}
	if !result.Done && !arrived(status) {
		s.app.Say("the import goes on by itself as soon as it can; `ccship status` shows it")
		return cli.Unfinished(result)
	}
	if status, err = client.Status(ctx); err != nil {
		return fmt.Errorf("ask daemon: %w", err)
	}
	return s.app.Print(s.saved(t.config, status, result))
}

// arrived says whether the user's own server has everything, whatever waits for others: a server that was named by
// mistake before keeps what was meant for it.
func arrived(s control.Status) bool {
	return len(s.Servers) > 0 && s.Servers[0].Batches == 0 && s.Files != nil && s.Files.ReadBytes >= s.Files.Bytes
}

// goesOn says whether an import that has not come to its end yet is worth waiting for.
func goesOn(r control.SyncResult, s control.Status) bool {
	clear := len(s.Servers) > 0 && (s.Servers[0].State == "ok" || s.Servers[0].State == "unknown")
	return !arrived(s) && (r.Reason == "timeout" || clear)
}
