package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"
)

// Client is one user of a server.
type Client struct {
	base, key string
	http      *http.Client
}

// NewClient talks to base with a key, over up to conns connections that stay open.
func NewClient(base, key string, conns int) *Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic("cookiejar without options: " + err.Error()) // it has no error to return
	}
	transport := &http.Transport{MaxIdleConnsPerHost: conns, MaxIdleConns: conns, DisableCompression: true}
	return &Client{base, key, &http.Client{Transport: transport, Jar: jar, Timeout: 10 * time.Minute}}
}

// As is the same connections with another user's key.
func (c *Client) As(key string) *Client { return &Client{c.base, key, c.http} }

// Close closes the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// StatusError is an answer that says no.
type StatusError struct {
	Code int
	Text string
}

func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %.300s", e.Code, e.Text) }

// Get reads a path's whole answer.
func (c *Client) Get(ctx context.Context, path string) ([]byte, error) {
	return c.do(ctx, http.MethodGet, path, nil, "")
}

// Post sends JSON, and reads the whole answer.
func (c *Client) Post(ctx context.Context, path string, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("POST %s: %w", path, err)
	}
	return c.do(ctx, http.MethodPost, path, text, "")
}

func (c *Client) do(ctx context.Context, method, path string, body []byte, coding string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if c.key != "" {
		req.Header.Set("X-API-Key", c.key)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if coding != "" {
		req.Header.Set("Content-Encoding", coding)
	}
	return c.send(req)
}

func (c *Client) send(req *http.Request) ([]byte, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", req.Method, req.URL.Path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", req.Method, req.URL.Path, err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %w", req.Method, req.URL.Path, &StatusError{resp.StatusCode, string(text)})
	}
	return text, nil
}

// Login opens the pages to this client, as its user.
func (c *Client) Login(ctx context.Context) error {
	form := url.Values{"key": {c.key}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/login", strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	_, err = c.send(req)
	return err
}

// AddUser makes a user with one key, and returns the key.
func (c *Client) AddUser(ctx context.Context, name string) (key string, err error) {
	if _, err := c.Post(ctx, "/api/users", map[string]string{"name": name, "role": "member"}); err != nil {
		return "", err
	}
	text, err := c.Post(ctx, "/api/keys", map[string]string{"name": name, "user": name})
	if err != nil {
		return "", err
	}
	var made struct{ Key string }
	if err := json.Unmarshal(text, &made); err != nil || made.Key == "" {
		return "", fmt.Errorf("make a key of %s: %.80q, %w", name, text, err)
	}
	return made.Key, nil
}

// Metric reads one of the server's metrics.
func (c *Client) Metric(ctx context.Context, name string) (float64, error) {
	text, err := c.Get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			var v float64
			_, err := fmt.Sscan(rest, &v)
			return v, err
		}
	}
	return 0, fmt.Errorf("the server has no metric %s", name)
}
