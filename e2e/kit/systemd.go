package kit

import (
	"context"
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

// FakeSystemctl takes the place of systemctl, for what ccship and ccship-server ask a user's systemd: FAKE_SYSTEMD
// names the folder of what it knows, "nobus" is one that cannot be reached, "" none at all. It starts what the unit
// names, waits until that is ready, and writes down what it was asked to do. The real one is tested in lab/systemd.
func FakeSystemctl() {
	s := FakeSystemd{Dir: os.Getenv("FAKE_SYSTEMD"), Unit: daemonUnit}
	switch s.Dir {
	case "":
		fail("System has not been booted with systemd as init system (PID 1). Can't operate.\n" +
			"Failed to connect to bus: Host is down")
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
	if len(words) > 1 {
		s.Unit = words[1]
	}
	s.do(words[0])
	os.Exit(0)
}

// FakeJournalctl shows what the service said.
func FakeJournalctl() {
	s := FakeSystemd{Dir: os.Getenv("FAKE_SYSTEMD"), Unit: daemonUnit}
	for _, word := range os.Args[1:] {
		if unit, ok := strings.CutPrefix(word, "--unit="); ok {
			s.Unit = unit
		}
	}
	s.append("calls", "journalctl "+strings.Join(os.Args[1:], " ")+"\n")
	text, err := os.ReadFile(s.path("journal"))
	if err != nil {
		fail("No journal files were found.")
	}
	fmt.Print(string(text))
	os.Exit(0)
}

// FakeLoginctl knows whether the user lingers: FAKE_LINGER says it.
func FakeLoginctl() {
	fmt.Println("Linger=" + os.Getenv("FAKE_LINGER"))
	os.Exit(0)
}

func fail(words string) {
	fmt.Fprintln(os.Stderr, words)
	os.Exit(1)
}

// daemonUnit is the unit whose files have their plain names.
const daemonUnit = "ccship.service"

// FakeSystemd knows things in files below Dir: calls, and of a unit whether it is enabled, its pid, journal, and status
// (of the last exit). Those of other units than the daemon's begin with the unit's name.
type FakeSystemd struct {
	Dir  string
	Unit string // with its suffix
}

func (s FakeSystemd) path(name string) string {
	if s.Unit != daemonUnit && name != "calls" {
		name = s.Unit + "." + name
	}
	return filepath.Join(s.Dir, name)
}

func (s FakeSystemd) read(name string) string {
	text, err := os.ReadFile(s.path(name))
	if err != nil {
		return ""
	}
	return string(text)
}

func (s FakeSystemd) append(name, text string) {
	f, err := os.OpenFile(s.path(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = io.WriteString(f, text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fail(err.Error())
	}
}

func (s FakeSystemd) write(name, text string) {
	_ = os.Remove(s.path(name))
	s.append(name, text)
}

// unit is the unit's file; "" when there is none.
func (s FakeSystemd) unit() string {
	path := filepath.Join(os.Getenv("HOME"), ".config", "systemd", "user", s.Unit)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

func (s FakeSystemd) argv() []string {
	text, err := os.ReadFile(s.unit())
	if err != nil {
		fail("Unit " + s.Unit + " not found.")
	}
	found := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindSubmatch(text)
	return strings.Fields(string(found[1]))
}

// PID is the process that runs; 0 when none does.
func (s FakeSystemd) PID() int {
	pid, err := strconv.Atoi(s.read("pid"))
	stat, statErr := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || statErr != nil || strings.Contains(string(stat), ") Z ") {
		return 0
	}
	return pid
}

func (s FakeSystemd) do(verb string) {
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
		s.Stop()
	case "restart":
		s.Stop()
		s.start()
	}
}

func (s FakeSystemd) show() {
	load, state, file, argv := "not-found", "inactive", "", ""
	if s.unit() != "" {
		load, file, argv = "loaded", "disabled", strings.Join(s.argv(), " ")
	}
	if s.read("enabled") != "" {
		file = "enabled"
	}
	status := "0"
	if s.PID() != 0 {
		state = "active"
	} else if status = s.read("status"); status != "" {
		state = "failed"
	}
	program, _, _ := strings.Cut(argv, " ")
	fmt.Printf("LoadState=%s\nActiveState=%s\nUnitFileState=%s\nFragmentPath=%s\nMainPID=%d\nResult=exit-code\n",
		load, state, file, s.unit(), s.PID())
	fmt.Printf("ExecMainStatus=%s\nExecStart={ path=%s ; argv[]=%s ; }\n", status, program, argv)
}

// start runs the unit's program until it says that it is ready, or ends.
func (s FakeSystemd) start() {
	argv := s.argv()
	if s.PID() != 0 {
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
	cmd := exec.CommandContext(context.Background(), argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = journal, journal, ownSession()
	cmd.Env = []string{"HOME=" + os.Getenv("HOME"), "PATH=" + os.Getenv("PATH"), "NOTIFY_SOCKET=" + socket}
	if err := cmd.Start(); err != nil {
		fail(err.Error())
	}
	s.write("pid", strconv.Itoa(cmd.Process.Pid))
	ready := make(chan bool, 2)
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil || strings.HasPrefix(string(buf[:n]), "READY=1") {
				ready <- err == nil
				return
			}
		}
	}()
	go func() {
		_ = cmd.Wait() // how it ended is in its state
		s.write("status", strconv.Itoa(cmd.ProcessState.ExitCode()))
		ready <- false
	}()
	if unit, _ := os.ReadFile(s.unit()); strings.Contains(string(unit), "Type=exec") {
		return // it runs; nothing says when it is ready
	}
	if !<-ready {
		fail("Job for " + s.Unit + " failed because the control process exited with error code.")
	}
}

// Stop ends the process that runs, and waits until it has ended.
func (s FakeSystemd) Stop() {
	_ = os.Remove(s.path("status"))
	pid := s.PID()
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
	for s.PID() != 0 {
		<-tick.C
	}
}
