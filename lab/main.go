// Command lab runs what takes long, needs much, or measures: faults for hours, kills of databases,
// the real Claude Code, programs of others, a Debian with systemd. What must hold at each change is tested in the
// module above, by make test.
//
//	go run . NAME [-quick] [WORD=VALUE...]
//
// Without a name it lists what there is. Results are printed; pages of results are written by hand.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ccship/ccship/e2e/kit"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// call is what was asked for.
type call struct {
	root  string // the module above
	quick bool
	words []string
}

func run(args []string) error {
	if len(args) == 0 || args[0] == "-h" || args[0] == "-help" || args[0] == "--help" {
		list(os.Stdout)
		return nil
	}
	i := slices.IndexFunc(rows, func(r row) bool { return r.name == args[0] })
	if i < 0 {
		return fmt.Errorf("there is no %q: without a name the list is printed", args[0])
	}
	root, err := kit.Root()
	if err != nil {
		return err
	}
	r, c := rows[i], call{root: root}
	for _, arg := range args[1:] {
		word, _, assigns := strings.Cut(arg, "=")
		switch {
		case arg == "-quick" || arg == "--quick":
			c.quick = true
		case assigns && slices.Contains(strings.Fields(r.words), word):
			c.words = append(c.words, arg)
		default:
			return fmt.Errorf("%s does not know %q; it takes -quick and %s", r.name, arg, words(r))
		}
	}
	return r.do(r, c)
}

func words(r row) string {
	if r.words == "" {
		return "no words"
	}
	return strings.ReplaceAll(r.words, " ", "=, ") + "="
}

func list(w io.Writer) {
	fmt.Fprint(w, "Usage, in the folder lab: go run . NAME [-quick] [WORD=VALUE...]\n\n")
	for _, r := range rows {
		fmt.Fprintf(w, "%-15s %s\n", r.name, r.what)
		fmt.Fprintf(w, "%15s takes %s; needs %s\n%15s words: %s\n", "", r.time, r.needs, "", words(r))
	}
}

// value is that of a word; otherwise when none is given.
func (c call) value(word, otherwise string) string {
	for _, w := range c.words {
		if v, ok := strings.CutPrefix(w, word+"="); ok {
			return v
		}
	}
	return otherwise
}

// command is a program that shows what it says, in a folder below the module above.
func (c call) command(dir string, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.Dir = filepath.Join(c.root, dir)
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}

// test runs tests of some packages, and ends with a table of the outcomes that they log.
func (c call) test(env []string, args ...string) error {
	dir := "lab"
	if strings.HasPrefix(args[len(args)-1], "../") { // of the module above
		dir = "."
		for i, arg := range args {
			if rest, ok := strings.CutPrefix(arg, "../"); ok {
				args[i] = "./" + rest
			}
		}
	}
	cmd := c.command(dir, env, "go", append([]string{"test", "-trimpath", "-v", "-count=1", "-timeout=48h"}, args...)...)
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	outcomes := show(os.Stdout, out)
	err = cmd.Wait()
	if slices.Sort(outcomes); len(outcomes) > 0 {
		fmt.Printf("\n%s%s\n", kit.OutcomeHead, strings.Join(outcomes, "\n"))
	}
	return err
}

var (
	noise  = regexp.MustCompile(`^\s*(=== (RUN|PAUSE|CONT|NAME)|--- PASS)`)
	logged = regexp.MustCompile(`^\s+\S+\.go:\d+: (\|.*\|)$`)
)

// show passes on what tests say, without the steps of the test runner, and returns the outcomes that they log.
func show(to io.Writer, from io.Reader) (outcomes []string) {
	for in := bufio.NewReader(from); ; {
		line, err := in.ReadString('\n')
		if row := logged.FindStringSubmatch(strings.TrimSuffix(line, "\n")); row != nil {
			outcomes = append(outcomes, row[1])
		} else if !noise.MatchString(line) {
			fmt.Fprint(to, line)
		}
		if err != nil {
			return outcomes
		}
	}
}

// told is the variable that tells tests what was asked for; more comes first, so that words win.
func (c call) told(more ...string) []string {
	form := kit.FullForm
	if c.quick {
		form = kit.QuickForm
	}
	return []string{kit.SettingVariable + "=" + strings.Join(slices.Concat([]string{form}, more, c.words), " ")}
}

// s3 builds an S3 server and returns the word that names it.
func (c call) s3() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "ccship-lab", "versitygw")
	const program, versions = "github.com/versity/versitygw/cmd/versitygw", "-modfile=.ci/tools/versitygw/go.mod"
	if err := c.command(".", nil, "go", "build", versions, "-o", path, program).Run(); err != nil {
		return "", fmt.Errorf("build the S3 server: %w", err)
	}
	return "versitygw=" + path, nil
}
