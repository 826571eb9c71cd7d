// Package claude drives the real Claude Code, in the versions people have, against a stand-in for its API on this
// machine, while the built ccship ships what it writes to the built ccship-server. It proves two things: that every
// line arrives, and that Claude Code does not wait for it. It also tests the plugin: what the session's Claude is shown
// and when, what its tools do, its installation, and how long a turn takes with it.
//
// The stand-in's own tests always run. The rest needs `lab claude`: it installs Claude Code from npm into the user's
// cache folder (or takes it from programs=FOLDER, a folder of claude-VERSION folders), needs no account and no key, and
// lets nothing leave the machine.
package claude
