// Package userdata renders what a new worker machine is told at its first boot:
// a short POSIX shell script that installs what is missing, writes a kubeadm
// JoinConfiguration and joins the cluster.
//
// Layer 1. Render is a function of its Spec: equal input gives equal bytes, so
// that a digest of the output can key a node template. The package refuses to do
// I/O, to read a clock, the environment or files, to guess a setting it was not
// given, and to let any value reach the shell or YAML other than through a
// quoting function after a syntax check. It never puts a secret into a command
// line, and its errors name the field and the remedy but never repeat a token.
package userdata
