// Package leader renders how a machine becomes the leader of a new cluster: the configuration
// of kubeadm init with the settings that the agent needs, and a shell script that installs the
// programs, runs kubeadm and applies the network, metrics-server and the cloud controller
// manager, each file by its pinned SHA-256. renderJoin does the same for a further machine of the
// control plane, and makeJoinValues for the secrets of its join.
//
// Render and Configuration are functions of their Spec. The package refuses to do I/O, to
// read a clock, the environment or files, to fetch a file without a checksum, and to put a
// value into the shell or YAML other than through an encoder after a syntax check. The
// output holds no secret: kubeadm makes its own on the machine, and a join reads them there.
package leader
