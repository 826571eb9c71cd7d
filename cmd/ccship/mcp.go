package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
)

// mcpProgram is the program behind `ccship mcp`. It is separate so that the daemon does not hold the protocol's code in
// memory all day.
const mcpProgram = "ccship-mcp"

func (a *app) mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Run an MCP server on standard input and output, for Claude",
		Long: "Speak the Model Context Protocol on standard input and output, for the Claude Code plugin and other " +
			"clients. Its tools: linked documents, checkpoints, short histories, and search on the server.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := a.Config()
			if err != nil {
				return err
			}
			self, err := show.OwnPath()
			if err != nil {
				return err
			}
			program, err := findMCP()
			if err != nil {
				return err
			}
			args := []string{"-ccship", self}
			for _, path := range show.Sockets(c) {
				args = append(args, "-socket", path)
			}
			return become(program, append(append(args, "--"), a.givenFlags()...))
		},
	}
}

// givenFlags are the flags of the configuration that were given, to be given again.
func (a *app) givenFlags() []string {
	var given []string
	a.Flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Name != "json" {
			given = append(given, "--"+f.Name+"="+f.Value.String())
		}
	})
	return given
}

// findMCP is the path of the program: next to this one, where packages and archives put it, else on PATH.
func findMCP() (string, error) {
	name := mcpProgram
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find own program: %w", err)
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	beside := filepath.Join(filepath.Dir(self), name)
	if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
		return beside, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("find %s: %w", mcpProgram, err)
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return "", control.Failed("the program "+mcpProgram+" is not beside "+self,
			"every package and archive of ccship contains it: put it into "+filepath.Dir(self))
	}
	return found, nil
}
