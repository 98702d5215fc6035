package agent

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/act"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/upgrade"
)

// kubernetes is the cluster as far as it decides about the workers' version. Before the Nodes are read nothing is
// known: a leader that lags behind could be among them.
func (a *app) kubernetes() upgrade.Cluster {
	c := upgrade.Cluster{Mode: a.cfg.Bootstrap.Upgrade}
	if version := a.server.Load(); version != nil && a.nodes.Read() {
		c.Server = *version
		for _, n := range a.nodes.Leaders() {
			c.Leaders = append(c.Leaders, upgrade.Leader{Name: n.Name, Kubelet: n.Status.NodeInfo.KubeletVersion})
		}
	}
	return c
}

// serverVersion notes the version of the API server.
func (a *app) serverVersion(version string) {
	a.server.Store(&version)
	a.observer.SetControlPlaneVersion(version)
}

// upgraded tells of user data that was published for another version of Kubernetes.
func (a *app) upgraded(_, text string) {
	a.recorder.Event(act.StatusObject, corev1.EventTypeNormal, "UserDataUpgraded", text)
}
