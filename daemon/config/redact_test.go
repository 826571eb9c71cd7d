package config

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript/redact"
)

// TestRedactRules reads a file as gitleaks has it.
func TestRedactRules(t *testing.T) {
	h := newHome(t)
	path := h.write("rules.toml", `
title = "ours"
[allowlist]
stopwords = ["sample"]
[[rules]]
id = "Our.Token"
description = "A token of ours"
regex = '''ours_([a-z0-9]{8,})'''
secretGroup = 1
entropy = 2.5
keywords = ["OURS_"]
[[rules.allowlists]]
regexTarget = "line"
regexes = ['''nolint''']
[[rules]]
id = "short"
regex = '''zq[0-9]{9}'''
keywords = ["zq"]
[[rules]]
id = "path-only"
path = '''\.pem$'''
`, 0o600)
	c := h.load(map[string]string{"redact_rules": path})
	all := kit.Try(c.Maskers()).Must(t)
	m := all.Of("")
	for text, want := range map[string]bool{
		"OURS_ ours_k3j5h7g9": true, "ours_sample35": false, "ours_k3j5h7g9 nolint": false, "zq123456789": true, "ours_aaaaaaaa": false,
	} {
		out, ranges := m.Text([]byte(text))
		kit.Check(t, (len(ranges) > 0) == want, "%q became %q", text, out)
	}
	out, ranges := m.Text([]byte("ours_k3j5h7g9k3j5h7g9k3j5h7g9"))
	kit.Check(t, len(ranges) == 1 && strings.HasPrefix(string(out), "ours_[our-token:"), "%q %v", out, ranges)
	for text, part := range map[string]string{
		"[extend]\nuseDefault = true": "extend", "[[rules]]\nid=\"a\"\nregex='('": "missing closing", "rules = 3": "rules.toml",
	} {
		h.write("rules.toml", text, 0o600)
		_, err := c.Maskers()
		kit.Check(t, err != nil && strings.Contains(err.Error(), part), "%q: %v", text, err)
	}
}

// TestRedactKey makes the key once, for this user alone.
func TestRedactKey(t *testing.T) {
	h := newHome(t)
	c := h.load(nil)
	first := kit.Try(c.RedactKey()).Must(t)
	again, err := c.RedactKey()
	kit.Check(t, err == nil && again == first, "read again the key is another, %v", err)
	info, err := os.Stat(c.RedactKeyFile())
	kit.Check(t, err == nil && info.Mode().Perm() == 0o600, "the key's file: %v, %v", info, err)
	kit.Must(t, c.WriteRedactKey(redact.Key{5}, true))
	kit.Gives(t, "an imported key reads back as", (redact.Key{5}))(c.RedactKey())
	kit.Must(t, os.WriteFile(c.RedactKeyFile(), []byte("no key"), 0o600))
	_, err = c.RedactKey()
	kit.Check(t, err != nil, "a damaged key is replaced")
}

// TestRedactProjects has rules and allow-lists for some folders only, for the built-in rules too.
func TestRedactProjects(t *testing.T) {
	h := newHome(t)
	shop := h.write("shop.toml", `
projects = ["~/work/shop", "/srv/shop"]
[[allowlists]]
targetRules = ["github"]
stopwords = ["abcd"]
[[rules]]
id = "shop"
regex = '''shop_[a-z0-9]{12,}'''
keywords = ["shop_"]
`, 0o600)
	cart := h.write("cart.toml", "projects = [\"~/work/shop/cart\"]\n[[rules]]\nid = \"cart\"\nregex = '''cart_[a-z0-9]{12,}'''\nkeywords = [\"cart_\"]\n", 0o600)
	c := h.load(map[string]string{"redact_rules": shop + string(os.PathListSeparator) + cart})
	all := kit.Try(c.Maskers()).Must(t)
	const text = "ghp_abcdEFGH1234abcdEFGH1234abcdEFGH1234 AKIAQ3EGSDFKJ4KKAX2Z shop_k3j5h7g9k3j5 cart_k3j5h7g9k3j5"
	home := c.Home()
	for dir, want := range map[string]string{
		"": "github aws-key", home + "/work": "github aws-key", home + "/work/shopping": "github aws-key",
		home + "/work/shop": "aws-key shop", home + "/work/shop/x": "aws-key shop", "/srv/shop/": "aws-key shop",
		home + "/work/shop/cart/x": "aws-key shop cart",
	} {
		_, ranges := all.Of(dir).Text([]byte(text))
		var got []string
		for _, r := range ranges {
			got = append(got, r.Rule)
		}
		kit.Check(t, strings.Join(got, " ") == want, "%q: %q, want %q", dir, got, want)
	}
	h.write("cart.toml", "projects = [\"~kim/x\"]\n", 0o600)
	_, err := c.Maskers()
	kit.Check(t, err != nil, "another user's home is accepted")
}

// TestRedactKeyStays: another key is replaced only on request, and one that others can read is refused.
func TestRedactKeyStays(t *testing.T) {
	h := newHome(t)
	c := h.load(nil)
	first := kit.Try(c.RedactKey()).Must(t)
	kit.Gives(t, "read again it is another key", first)(c.RedactKey())
	kit.Err(t, "the same key", nil)(c.WriteRedactKey(first, false))
	err := c.WriteRedactKey(redact.Key{1}, false)
	kit.Check(t, err != nil && strings.Contains(err.Error(), "another key"), "another key: %v", err)
	key, _ := c.RedactKey()
	kit.Check(t, key == first, "the key was replaced")
	kit.Must(t, c.WriteRedactKey(redact.Key{1}, true))
	kit.Gives(t, "the key was not replaced", (redact.Key{1}))(c.RedactKey())
	if runtime.GOOS == "windows" {
		return
	}
	kit.Must(t, os.Chmod(c.RedactKeyFile(), 0o640))
	_, err = c.RedactKey()
	kit.Check(t, err != nil && strings.Contains(err.Error(), "chmod 600"), "a key that others can read: %v", err)
}
