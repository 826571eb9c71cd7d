// Package viewer drives the built binaries through a real browser, headless Chromium, as a person would: pages are opened,
// clicked, typed into and looked at. Every tab is watched: a request to anywhere else, a message on the console, a
// breach of the page's policy or a dialog fails its test.
//
// Beside it are clients that mean harm, which must not hurt the one that behaves.
//
// The conversations are invented. `make screenshots` takes the pictures of docs/screenshots from them.
package viewer
