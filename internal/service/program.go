package service

import (
	"strings"

	"github.com/ccship/ccship/packaging"
)

// Program is one of the programs that can be a service.
type Program struct {
	Name string // of the command, the unit and Windows' service

	what       string // in a sentence
	install    string // the command line that installs it
	foreground string // the command that runs it without a manager
	label      string // launchd's name of the agent
	userUnit   string // systemd's files, and launchd's
	systemUnit string // "": it is a service of one user only
	agent      string
	start      string // its command in these units
	logs       string // its command that shows the log; "": the manager's is used
}

// Daemon is ccship itself, as a service of one user or of the system.
var Daemon = Program{
	Name: "ccship", what: "the daemon", foreground: "ccship run", install: "ccship service install",
	label: "com.github.ccship", logs: "ccship service logs",
	userUnit: packaging.UserUnit, systemUnit: packaging.SystemUnit, agent: packaging.Agent, start: packaging.Start,
}

// Server is ccship-server as a service of one user. Packages bring a service of the system themselves.
var Server = Program{
	Name: "ccship-server", what: "the server", foreground: "ccship-server serve", install: "ccship-server install",
	label:    "com.github.ccship.server",
	userUnit: packaging.ServerUserUnit, agent: packaging.ServerAgent, start: packaging.ServerStart,
}

// unit is systemd's file for the program.
func (p Program) unit(system bool) string {
	if system {
		return p.systemUnit
	}
	return p.userUnit
}

// orSystem returns a hint at the service of the system, for a program that can be one.
func (p Program) orSystem(hint string) string {
	if p.systemUnit == "" {
		return "`sudo systemctl enable --now " + p.Name + "` starts the service of the package, which is of the system"
	}
	return hint
}

// logHint returns a hint at the log: what it does for the reader.
func (s *systemd) logHint(does string) string { return s.o.Program.logHint(s.logs(50, false), does) }

func (l *launchd) logHint(does string) string { return l.o.Program.logHint(l.logs(50, false), does) }

func (p Program) logHint(argv []string, does string) string {
	if p.logs != "" {
		argv = []string{p.logs}
	}
	return "`" + strings.Join(argv, " ") + "` " + does
}
