package show

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/ccship/ccship/daemon/control"
)

// Hint returns what to do about an error of which nothing more is known than its code.
func Hint(code string) string {
	switch code {
	case control.CodeNotRunning:
		return "`ccship setup` connects to a server and starts it; `ccship run` starts it in this terminal"
	case control.CodeNoAnswer:
		return "it may be stopped or overloaded: check its process, or restart it"
	case control.CodeUsage:
		return "`ccship help all` lists all commands and flags"
	case control.CodeConfig:
		return "`ccship config --help` lists every key, `ccship doctor` checks what is set"
	case control.CodeInUse:
		return "`ccship status` shows the daemon that runs; stop it first"
	case control.CodeSocket:
		return "choose another path with --socket; `ccship config` prints the one in use"
	case "no_server":
		return "`ccship setup` connects to one, or starts one on this machine; `ccship up` only tries it out"
	case "full":
		return "make the server reachable or free disk space; reading then resumes by itself"
	case "paused":
		return "`ccship unpause` or `ccship sync` ends the pause"
	case control.CodeNoDeadLetter:
		return "`ccship outbox list --dead` lists them"
	case control.CodeNoSession:
		return "`ccship list` lists them"
	case control.CodeDocument:
		return "`ccship link list` shows linked files; only files below the session's folder can be linked"
	case control.CodeNoPattern:
		return "`ccship exclude` shows what is excluded, and why"
	case "timeout":
		return "give it longer with --timeout; see `ccship status`"
	case "interrupted":
		return "the daemon continues without it; run the command again to see the result"
	}
	if hint := TroubleHint(code); hint != "" {
		return hint
	}
	return "see `ccship status` and the daemon's log"
}

// TroubleHint returns what to do about a kind of trouble with a server; "" when the kind is unknown.
func TroubleHint(kind string) string {
	switch kind {
	case control.CodeUnreachable:
		return "check that the server runs and that server_url is its address; nothing is lost, ccship keeps retrying"
	case "server_error":
		return "check the server's log; nothing is lost, ccship keeps retrying"
	case "busy":
		return "wait: ccship retries when the server allows it"
	case "over_quota":
		return "nothing is lost, it waits here: forget sessions with `ccship forget`, or have the limit raised"
	case control.CodeRefusedKey:
		return "`ccship-server key create --name NAME` on the server makes one; `ccship setup` asks for it"
	case "refused":
		return "check the server's log, and that server_url is the address of a conversation server"
	case "not_found":
		return "check server_url: there is no conversation API at that address"
	case "redirect":
		return "set server_url to the server's new address"
	case "protocol":
		return "check server_url: another program may answer there"
	}
	return ""
}

// SystemHint returns what to do about an error of the system; "" when only its text helps.
func SystemHint(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "make it readable and writable by this user; `ccship config` lists what is used"
	case errors.Is(err, syscall.ENOSPC):
		return "free disk space, then run the command again"
	case errors.Is(err, syscall.EROFS):
		return "name a folder that can be written with --state-dir; `ccship config` lists what is used"
	case errors.Is(err, fs.ErrNotExist):
		return "`ccship config` lists every file and folder that is used"
	}
	return ""
}
