// Package account logs readers in and out and shows the account page: keys, one-time links, users and shares. It does
// not know what else the viewer shows.
package account
