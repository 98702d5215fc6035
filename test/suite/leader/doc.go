// Package leader makes a leader and its first worker: a bare Debian in a systemd container
// runs what `autoscaler-agent leader-config` prints, with real kubeadm init and the control
// plane's real programs in static pods; the agent is installed on it as docs/install.md says;
// a pod that has no room makes the agent raise a group of the emulated cloud, and a second
// container joins with the user data that was rendered on the leader.
//
// TestHA (make e2e-ha) makes three leaders behind a TCP forwarder by what leader-config --join
// prints, and kills the acting agent in the middle of its work; docs/ha.md's own commands replace
// one leader and go on after the loss of two.
//
// TestUpgradeByKubeadm (make e2e-upgrade) upgrades two leaders with docs/upgrade.md's own commands, and the agent's worker
// after them.
//
// It runs only where AUTOSCALER_TEST_LEADER is set (make e2e-leader), as root, in a network
// namespace of its own; each container has one as well. The containers are those of
// test/suite/worker.
//
// What is not real: the kernel is the host's; the cloud is emulated; the images hold the
// project-built programs and nothing else. There is none for kube-proxy, CoreDNS and
// metrics-server, so their pods stay without a container; the network of the pods is a bridge
// on each machine, which reaches no other.
package leader
