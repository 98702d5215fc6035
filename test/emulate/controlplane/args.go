package controlplane

import (
	"strconv"
	"time"
)

func (cp *ControlPlane) etcdArgs() []string {
	client, peer := loopback(cp.ports.etcd), loopback(cp.ports.peer)
	return []string{
		"--name=control-plane", "--data-dir=" + cp.path("etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=control-plane=" + peer,
		"--cert-file=" + cp.pki("etcd/server.crt"), "--key-file=" + cp.pki("etcd/server.key"),
		"--trusted-ca-file=" + cp.pki("etcd/ca.crt"), "--client-cert-auth",
		"--peer-cert-file=" + cp.pki("etcd/peer.crt"), "--peer-key-file=" + cp.pki("etcd/peer.key"),
		"--peer-trusted-ca-file=" + cp.pki("etcd/ca.crt"), "--peer-client-cert-auth",
		// The data lives as long as one test; a killed etcd loses nothing, because
		// what it wrote is in the page cache. Only a power cut would.
		"--unsafe-no-fsync", "--log-level=warn",
	}
}

func (cp *ControlPlane) apiserverArgs() []string {
	return []string{
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(cp.ports.api),
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--etcd-servers=" + loopback(cp.ports.etcd), "--etcd-cafile=" + cp.pki("etcd/ca.crt"),
		"--etcd-certfile=" + cp.pki("apiserver-etcd-client.crt"), "--etcd-keyfile=" + cp.pki("apiserver-etcd-client.key"),
		"--client-ca-file=" + cp.pki("ca.crt"),
		"--tls-cert-file=" + cp.pki("apiserver.crt"), "--tls-private-key-file=" + cp.pki("apiserver.key"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth=true", "--allow-privileged=true",
		"--service-cluster-ip-range=" + cp.opts.ServiceCIDR,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + cp.pki("sa.pub"), "--service-account-signing-key-file=" + cp.pki("sa.key"),
		"--kubelet-client-certificate=" + cp.pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + cp.pki("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
		"--proxy-client-cert-file=" + cp.pki("front-proxy-client.crt"),
		"--proxy-client-key-file=" + cp.pki("front-proxy-client.key"),
		"--requestheader-client-ca-file=" + cp.pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-username-headers=X-Remote-User",
	}
}

func (cp *ControlPlane) controllerManagerArgs() []string {
	conf := cp.conf("controller-manager.conf")
	args := []string{
		"--kubeconfig=" + conf, "--authentication-kubeconfig=" + conf, "--authorization-kubeconfig=" + conf,
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(cp.ports.kcm),
		"--client-ca-file=" + cp.pki("ca.crt"), "--root-ca-file=" + cp.pki("ca.crt"),
		"--requestheader-client-ca-file=" + cp.pki("front-proxy-ca.crt"),
		"--cluster-name=" + cp.opts.ClusterName,
		"--cluster-signing-cert-file=" + cp.pki("ca.crt"), "--cluster-signing-key-file=" + cp.pki("ca.key"),
		"--service-account-private-key-file=" + cp.pki("sa.key"),
		"--controllers=*,bootstrapsigner,tokencleaner", "--use-service-account-credentials=true",
		cp.servingCert(), cp.servingKey(),
		// One instance: an election would only make its restart slower.
		"--leader-elect=false",
	}
	if cp.opts.NodeMonitorGrace > 0 {
		// The controller refuses a grace that its own period cannot resolve.
		period := min(5*time.Second, max(cp.opts.NodeMonitorGrace/12, 200*time.Millisecond))
		args = append(args, "--node-monitor-grace-period="+cp.opts.NodeMonitorGrace.String(), "--node-monitor-period="+period.String())
	}
	return append(args, cp.speed()...)
}

func (cp *ControlPlane) schedulerArgs() []string {
	conf := cp.conf("scheduler.conf")
	return append([]string{
		"--kubeconfig=" + conf, "--authentication-kubeconfig=" + conf, "--authorization-kubeconfig=" + conf,
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(cp.ports.scheduler), cp.servingCert(), cp.servingKey(),
		"--leader-elect=false",
	}, cp.speed()...)
}

// servingCert: on a leader these two parts make up a certificate at start. Here they
// share the API server's, which has 127.0.0.1, so that whoever asks for their health
// knows whom it asked: with parallel tests a port may belong to another cluster.
func (cp *ControlPlane) servingCert() string { return "--tls-cert-file=" + cp.pki("apiserver.crt") }
func (cp *ControlPlane) servingKey() string {
	return "--tls-private-key-file=" + cp.pki("apiserver.key")
}

// speed lifts the clients' rate limits: 300 pods are Pending after 15 s with the
// defaults, Running after 8 s with these.
func (cp *ControlPlane) speed() []string {
	if !cp.opts.Fast {
		return nil
	}
	return []string{"--kube-api-qps=500", "--kube-api-burst=1000"}
}
