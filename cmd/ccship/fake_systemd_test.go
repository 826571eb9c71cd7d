package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// fakeSystemctl is a user's systemd as far as one service goes: FAKE_SYSTEMD names the folder of what it knows, "nobus"
// is one that cannot be reached, "" none at all. It starts what the unit names, waits until that is ready, and writes
// down what it was asked to do. What only a real systemd shows is tested with one, in e2e/systemd.
func fakeSystemctl() {
	s := fakeSystemd{dir: os.Getenv("FAKE_SYSTEMD")}
	switch s.dir {
	case "":
		fail("System has not been booted with systemd as init system (PID 1). Can't operate.\nFailed to connect to bus: Host is down")
	case "nobus":
		fail("Failed to connect to bus: No medium found")
	}
	var words []string
	for _, word := range os.Args[1:] {
		if !strings.HasPrefix(word, "-") {
			words = append(words, word)
		}
	}
	if !slices.Contains(os.Args, "--user") {
		fail("Failed to connect to bus: this fake is of a user")
	}
	if words[0] != "show" {
		s.append("calls", strings.Join(words, " ")+"\n")
	}
	s.do(words[0])
	os.Exit(0)
}

// fakeJournalctl shows what the service said.
func fakeJournalctl() {
	s := fakeSystemd{dir: os.Getenv("FAKE_SYSTEMD")}
	s.append("calls", "journalctl "+strings.Join(os.Args[1:], " ")+"\n")
	text, err := os.ReadFile(filepath.Join(s.dir, "journal"))
	if err != nil {
		fail("No journal files were found.")
	}
	fmt.Print(string(text))
	os.Exit(0)
}

// fakeLoginctl knows whether the user lingers.
func fakeLoginctl() {
	fmt.Println("Linger=" + os.Getenv("FAKE_LINGER"))
	os.Exit(0)
}

func fail(words string) {
	fmt.Fprintln(os.Stderr, words)
	os.Exit(1)
}

// fakeSystemd knows things in files: calls, enabled, pid, journal, status (of the last exit).
type fakeSystemd struct{ dir string }

func (s fakeSystemd) path(name string) string { return filepath.Join(s.dir, name) }

func (s fakeSystemd) read(name string) string {
	text, err := os.ReadFile(s.path(name))
	if err != nil {
		return ""
	}
	return string(text)
}

func (s fakeSystemd) append(name, text string) {
	f, err := os.OpenFile(s.path(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = io.WriteString(f, text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fail(err.Error())
	}
}

func (s fakeSystemd) write(name, text string) {
	_ = os.Remove(s.path(name))
	s.append(name, text)
}

// unit is the unit's file; "" when there is none.
func (s fakeSystemd) unit() string {
	path := filepath.Join(os.Getenv("HOME"), ".config", "systemd", "user", "ccship.service")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

func (s fakeSystemd) argv() []string {
	text, err := os.ReadFile(s.unit())
	if err != nil {
		fail("Unit ccship.service not found.")
	}
	found := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindSubmatch(text)
	return strings.Fields(string(found[1]))
}

// pid is the process that runs; 0 when none does.
func (s fakeSystemd) pid() int {
	pid, err := strconv.Atoi(s.read("pid"))
	stat, statErr := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || statErr != nil || strings.Contains(string(stat), ") Z ") {
		return 0
	}
	return pid
}

func (s fakeSystemd) do(verb string) {
	switch verb {
	case "show":
		s.show()
	case "enable":
		s.argv()
		s.write("enabled", "yes")
	case "disable":
		_ = os.Remove(s.path("enabled"))
	case "start":
		s.start()
	case "stop":
		s.stop()
	case "restart":
		s.stop()
		s.start()
	}
}

func (s fakeSystemd) show() {
	load, state, file, argv := "not-found", "inactive", "", ""
	if s.unit() != "" {
		load, file, argv = "loaded", "disabled", strings.Join(s.argv(), " ")
	}
	if s.read("enabled") != "" {
		file = "enabled"
	}
	status := "0"
	if s.pid() != 0 {
		state = "active"
	} else if status = s.read("status"); status != "" {
		state = "failed"
	}
	program, _, _ := strings.Cut(argv, " ")
	fmt.Printf("LoadState=%s\nActiveState=%s\nUnitFileState=%s\nFragmentPath=%s\nMainPID=%d\nResult=exit-code\nExecMainStatus=%s\nExecStart={ path=%s ; argv[]=%s ; }\n",
		load, state, file, s.unit(), s.pid(), status, program, argv)
}

// start runs the unit's program until it says that it is ready, or ends.
func (s fakeSystemd) start() {
	argv := s.argv()
	if s.pid() != 0 {
		return
	}
	socket := fmt.Sprintf("@fake-systemd-%d", os.Getpid())
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		fail(err.Error())
	}
	journal, err := os.OpenFile(s.path("journal"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fail(err.Error())
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = journal, journal
	cmd.Env = []string{"HOME=" + os.Getenv("HOME"), "PATH=" + os.Getenv("PATH"), "NOTIFY_SOCKET=" + socket}
	if err := cmd.Start(); err != nil {
		fail(err.Error())
	}
	s.write("pid", strconv.Itoa(cmd.Process.Pid))
	ready := make(chan bool, 2)
	go func() {
		buf := make([]byte, 4096)
		n, err := conn.Read(buf)
		ready <- err == nil && strings.HasPrefix(string(buf[:n]), "READY=1")
	}()
	go func() {
		_ = cmd.Wait() // how it ended is in its state
		s.write("status", strconv.Itoa(cmd.ProcessState.ExitCode()))
		ready <- false
	}()
	if !<-ready {
		fail("Job for ccship.service failed because the control process exited with error code.")
	}
}

func (s fakeSystemd) stop() {
	_ = os.Remove(s.path("status"))
	pid := s.pid()
	if pid == 0 {
		return
	}
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Signal(syscall.SIGTERM)
	}
	if err != nil {
		fail(err.Error())
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for s.pid() != 0 {
		<-tick.C
	}
}
