package web

import (
	"testing"
	"time"
)

func TestLogins(t *testing.T) {
	var l logins
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	first := l.add([32]byte{1}, start)
	if key, ok := l.find(first, start.Add(loginFor-time.Second)); !ok || key != [32]byte{1} {
		t.Error("a login is gone before its time")
	}
	if _, ok := l.find(first, start.Add(loginFor)); ok {
		t.Error("a login outlives its time")
	}
	if _, ok := l.find("guess", start); ok {
		t.Error("a guess is a login")
	}
	second := l.add([32]byte{2}, start.Add(time.Second))
	for i := range maxLogins - 1 {
		l.add([32]byte{3}, start.Add(time.Duration(i+2)*time.Second))
	}
	if _, ok := l.find(first, start); ok || len(l.list) != maxLogins {
		t.Errorf("%d logins are kept, the oldest among them: %v", len(l.list), ok)
	}
	if _, ok := l.find(second, start); !ok {
		t.Error("more than the oldest login went")
	}
}

func TestLocalPath(t *testing.T) {
	for in, want := range map[string]string{
		"/sessions/a%2Fb?x=1": "/sessions/a%2Fb?x=1", "//evil": "/", "https://evil": "/", "/\\evil": "/", "": "/", "/\t/evil": "/",
	} {
		if got := localPath(in); got != want {
			t.Errorf("%q leads to %q", in, got)
		}
	}
}

func TestCut(t *testing.T) {
	for n, want := range map[int]string{0: "… (4 B more)", 1: "a… (3 B more)", 2: "a… (3 B more)", 3: "aé… (1 B more)", 4: "aéb"} {
		if got := cut("aéb", n); got != want {
			t.Errorf("cut at %d: %q, want %q", n, got, want)
		}
	}
}
