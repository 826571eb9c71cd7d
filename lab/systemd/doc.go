// Package systemd installs the built packages in a Debian whose process 1 is a real systemd, and lives through what a
// service lives through there: installation, kill -9, a hang, reboot, power loss, upgrade, logout, removal.
//
// The box is a systemd-nspawn container with a network of its own that has only loopback; ccship and ccship-server run
// in it from their .deb files. It needs `lab systemd`, root, and Debian's debootstrap and systemd-container on
// the host. The base system is built once and kept in ${XDG_CACHE_HOME:-~/.cache}/ccship-e2e; every box is a copy.
//
// Power loss is simulated by killing every process of the box at once. What the kernel holds in memory survives, so
// this says nothing about missing fsyncs.
package systemd
