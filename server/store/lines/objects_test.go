package lines

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

func TestFolder(t *testing.T) {
	contract(t, "file://"+filepath.ToSlash(filepath.Join("/", t.TempDir(), "new", "place")))
}

// TestBucket is the contract on the S3-compatible storage that CCSHIP_TEST=s3=URL names, as --blocks does, or on the
// program that versitygw= is.
func TestBucket(t *testing.T) {
	at, program := kit.Setting("s3", ""), kit.Setting("versitygw", "")
	switch {
	case at != "":
	case program != "":
		at = gateway(t, program)
	default:
		t.Skip("lab cold runs it")
	}
	contract(t, at)
}

// gateway starts an S3 server on a folder of its own.
func gateway(t *testing.T, program string) string {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "user")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secretsecret")
	ln, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free
	kit.Must(t, err)
	address, dir := ln.Addr().String(), t.TempDir()
	kit.Must(t, errors.Join(ln.Close(), os.Mkdir(filepath.Join(dir, "bucket"), 0o700)))
	cmd := exec.CommandContext(t.Context(), program, "--port", address, "posix", dir)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY=user", "ROOT_SECRET_KEY=secretsecret")
	kit.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // killed when the test ended
	for end := time.Now().Add(5 * time.Minute); ; {
		answer, err := http.Get("http://" + address)
		if err == nil {
			_ = answer.Body.Close()
			return "s3://bucket/ccship?lookup=path&region=us-east-1&endpoint=http://" + address
		}
		kit.Require(t, !time.Now().After(end), "the S3 server does not answer: %v", err)
		<-time.After(20 * time.Millisecond)
	}
}

func contract(t *testing.T, at string) {
	t.Helper()
	ctx := t.Context()
	s := kit.Try(openObjects(at)).Must(t)
	big := bytes.Repeat([]byte("0123456789abcdef"), 200<<10)
	for name, data := range map[string][]byte{"id/1/s2/A": []byte("x"), "id/1/s2/B": big, "id/1/f2/A": {0}} {
		kit.Err(t, name+" before it is written", errNoObject)(s.Get(ctx, name, 9))
		kit.Err(t, fmt.Sprintf("remove %s before it is written", name), nil)(s.Delete(ctx, name))
		for range 2 {
			kit.Must(t, s.Put(ctx, name, data))
		}
		got, err := s.Get(ctx, name, int64(len(data))+1)
		kit.Check(t, err == nil && bytes.Equal(got, data), "%s has %d bytes, want %d: %v", name, len(got), len(data), err)
	}
	got, err := s.Get(ctx, "id/1/s2/B", 5)
	kit.Check(t, err == nil && string(got) == "01234", "cut to 5 bytes: %q, %v", got, err)
	kit.Must(t, s.Delete(ctx, "id/1/s2/A"))
	kit.Err(t, "after it was removed", errNoObject)(s.Get(ctx, "id/1/s2/A", 9))
	got, err = s.Get(ctx, "id/1/s2/B", 1)
	kit.Check(t, err == nil && len(got) == 1, "its neighbour: %v", err)
	for _, name := range []string{"id/1/s2/B", "id/1/f2/A"} {
		kit.Should(t, s.Delete(ctx, name))
	}
}

func TestAddresses(t *testing.T) {
	for _, good := range []string{"s3://bucket", "s3://bucket/a/b?region=eu-1", "file:///srv/cold",
		"s3://bucket/p?endpoint=http://127.0.0.1:9000&lookup=path"} {
		kit.Err(t, good, nil)(CheckBlocks(good))
	}
	for bad, why := range map[string]string{
		"": "want s3://", "/srv": "want s3://", "http://x/y": "want s3://", "file:///": "absolute", "file://srv/x": "absolute",
		"s3:///p": "bucket is missing", "s3://b?x=1": "the options are endpoint", "s3://b?endpoint=host": "no address",
		"s3://key:secret@b": "AWS_ACCESS_KEY_ID", "secret@key": "want s3://", "AKIA:secret@/b": "want s3://", "s3://b?secret@=x": "the options are",
		"s3://b?endpoint=https://u:secret@h": "no address", "s3://b?lookup=secret@": "path or host", "s3://b?lookup=no": "path or host",
	} {
		err := CheckBlocks(bad)
		kit.Check(t, errors.Is(err, ErrBadBlocks) && strings.Contains(err.Error(), why) &&
			!strings.Contains(err.Error(), "secret@"), "%q: %v, want %q", bad, err, why)
	}
}
