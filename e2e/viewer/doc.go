// Package viewer drives the built binaries through a real browser, headless Chromium, as a person would: it opens
// pages, clicks, types and looks. Every tab is watched: a request to another host, a message on the console, a
// violation of the page's content security policy or a dialog fails its test.
//
// Hostile clients run at the same time and must not disturb it.
//
// The conversations are invented. `lab screenshots` takes the picture in the README from them.
package viewer
