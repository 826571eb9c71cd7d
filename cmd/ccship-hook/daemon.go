package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ccship/ccship/internal/sys"
)

var (
	errNobody = errors.New("no daemon listens there") // another socket may have one
	errUsage  = errors.New("the daemon does not know the request")
	errAnswer = errors.New("the answer is not a daemon's")
)

// maxAnswer is how many bytes of an answer are read, maxHeader of what stands before it, and maxAnswers are asked for.
const (
	maxAnswer  = 4 << 20
	maxHeader  = 64 << 10
	maxAnswers = 3
)

// daemon is a connection to a daemon: HTTP/1.1 as package control answers it, one request after the other.
type daemon struct {
	conn net.Conn
	in   *bufio.Reader
}

func dial(ctx context.Context, path string) (*daemon, error) {
	conn, err := sys.DialPeer(ctx, net.Dialer{}, path)
	switch {
	case err == nil:
		return &daemon{conn, bufio.NewReader(io.LimitReader(conn, maxAnswers*(maxAnswer+maxHeader)))}, nil
	case ctx.Err() != nil || errors.Is(err, syscall.EAGAIN): // one that is too slow to accept
		return nil, fmt.Errorf("dial daemon: %w", err)
	default:
		return nil, errors.Join(errNobody, err)
	}
}

func (d *daemon) close() { _ = d.conn.Close() }

func (d *daemon) pending(ctx context.Context, req request) (answer, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return answer{}, fmt.Errorf("write request: %w", err)
	}
	size := strconv.Itoa(len(body))
	return d.ask(ctx, "POST /v1/pending HTTP/1.1\r\nHost: ccship\r\nContent-Length: "+size+"\r\n\r\n"+string(body))
}

func (d *daemon) get(ctx context.Context, path string) (answer, error) {
	return d.ask(ctx, "GET "+path+" HTTP/1.1\r\nHost: ccship\r\n\r\n")
}

// ask sends one request and reads all of its answer. ctx ends it at any time.
func (d *daemon) ask(ctx context.Context, request string) (a answer, err error) {
	defer context.AfterFunc(ctx, func() { _ = d.conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := io.WriteString(d.conn, request); err != nil {
		return a, errors.Join(errNobody, err)
	}
	if _, err := d.in.Peek(1); err != nil { // it ended just now, or hangs up on this user
		return a, errors.Join(errNobody, err)
	}
	status, body, err := d.read()
	if err != nil {
		return a, fmt.Errorf("read answer of daemon: %w", err)
	}
	if status == 200 {
		if err := json.Unmarshal(body, &a); err != nil {
			return a, fmt.Errorf("read answer of daemon: %w", err)
		}
		return a, nil
	}
	var refusal struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(body, &refusal) == nil && refusal.Code == "usage" {
		return a, errUsage
	}
	return a, fmt.Errorf("%w: status %d", errAnswer, status)
}

// read reads one response. What follows it stays in d.in.
func (d *daemon) read() (status int, body []byte, err error) {
	text := textproto.NewReader(d.in)
	line, err := text.ReadLine()
	if err != nil {
		return 0, nil, err
	}
	version, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err = strconv.Atoi(code)
	if err != nil || !strings.HasPrefix(version, "HTTP/1.") {
		return 0, nil, errAnswer
	}
	header, err := text.ReadMIMEHeader()
	if err != nil {
		return 0, nil, err
	}
	if strings.EqualFold(header.Get("Transfer-Encoding"), "chunked") {
		body, err = d.chunks(text)
		return status, body, err
	}
	size, err := strconv.ParseUint(header.Get("Content-Length"), 10, 31)
	if err != nil || size > maxAnswer {
		return 0, nil, errAnswer
	}
	body = make([]byte, size)
	_, err = io.ReadFull(d.in, body)
	return status, body, err
}

// chunks reads a body in chunks, each with its size in front.
func (d *daemon) chunks(text *textproto.Reader) (body []byte, err error) {
	for {
		line, err := text.ReadLine()
		if err != nil {
			return nil, err
		}
		digits, _, _ := strings.Cut(line, ";")
		size, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 31)
		if err != nil || len(body)+int(size) > maxAnswer {
			return nil, errAnswer
		}
		if size == 0 {
			_, err := text.ReadMIMEHeader() // trailers, and the empty line
			return body, err
		}
		at := len(body)
		body = append(body, make([]byte, size)...)
		if _, err := io.ReadFull(d.in, body[at:]); err != nil {
			return nil, err
		}
		if end, err := text.ReadLine(); err != nil || end != "" {
			return nil, errors.Join(errAnswer, err)
		}
	}
}
