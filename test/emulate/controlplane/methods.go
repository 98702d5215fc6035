package controlplane

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Kubeconfig is the file admin.conf as kubeadm wrote it (mode 0600).
func (cp *ControlPlane) Kubeconfig() string { return cp.conf("admin.conf") }

// RESTConfig is a copy of the administrator's configuration, without rate limit.
func (cp *ControlPlane) RESTConfig() *rest.Config { return rest.CopyConfig(cp.rest) }

// Client is the administrator's client, without rate limit.
func (cp *ControlPlane) Client() kubernetes.Interface { return cp.client }

// Endpoint is the API server's URL, "https://127.0.0.1:PORT".
func (cp *ControlPlane) Endpoint() string { return loopback(cp.ports.api) }

// CAFile is the cluster's CA certificate; CAKeyFile, beside it, is its key.
func (cp *ControlPlane) CAFile() string { return cp.pki("ca.crt") }

// CAKeyFile is the key of the cluster's CA.
func (cp *ControlPlane) CAKeyFile() string { return cp.pki("ca.key") }

// Dir holds everything of this control plane: pki/, conf/, log/, etcd/.
func (cp *ControlPlane) Dir() string { return cp.dir }

// Binaries are the programs it runs; Dir of it, in front of PATH, gives kubectl and
// kubeadm of the same version.
func (cp *ControlPlane) Binaries() Bin { return cp.bin }

func (cp *ControlPlane) part(name string) *part {
	for _, p := range cp.parts {
		if p.name == name {
			return p
		}
	}
	return nil
}

// named is part with an error for a name that does not exist or a stopped control
// plane, whose parts must not come back.
func (cp *ControlPlane) named(verb, name string) (*part, error) {
	p := cp.part(name)
	if p == nil {
		return nil, fmt.Errorf("%s %s: no such part: use one of %s", verb, name, strings.Join(Parts(), ", "))
	}
	return p, nil
}

// StartPart starts a part that was stopped or killed, with the arguments and ports
// that it had, and waits until it is healthy.
func (cp *ControlPlane) StartPart(ctx context.Context, name string) error {
	p, err := cp.named("start", name)
	if err != nil {
		return err
	}
	cp.stopMu.Lock()
	if cp.stopped {
		cp.stopMu.Unlock()
		return fmt.Errorf("start %s: the control plane was stopped", name)
	}
	err = p.start()
	cp.stopMu.Unlock()
	if err != nil {
		return err
	}
	return p.ready(ctx)
}

// StopPart asks a part to end (SIGTERM) and waits for it; after 10 s, or when ctx
// ends, it is killed. A part that has ended already is no error.
func (cp *ControlPlane) StopPart(ctx context.Context, name string) error {
	p, err := cp.named("stop", name)
	if err != nil {
		return err
	}
	return p.end(ctx, syscall.SIGTERM, 10*time.Second)
}

// KillPart ends a part with SIGKILL and returns when the process is gone.
func (cp *ControlPlane) KillPart(name string) error {
	p, err := cp.named("kill", name)
	if err != nil {
		return err
	}
	return p.end(context.Background(), syscall.SIGKILL, cp.opts.patience)
}

// PausePart freezes a part (SIGSTOP): its connections stay open and nothing answers.
func (cp *ControlPlane) PausePart(name string) error {
	p, err := cp.named("pause", name)
	if err != nil {
		return err
	}
	return p.pause(true)
}

// ResumePart lets a paused part go on (SIGCONT).
func (cp *ControlPlane) ResumePart(name string) error {
	p, err := cp.named("resume", name)
	if err != nil {
		return err
	}
	return p.pause(false)
}

// PID is a part's process id, 0 while it does not run.
func (cp *ControlPlane) PID(name string) int {
	if p := cp.part(name); p != nil {
		return p.pid()
	}
	return 0
}

// State is "running", "paused", "stopped" or "not started".
func (cp *ControlPlane) State(name string) string {
	if p := cp.part(name); p != nil {
		return p.state()
	}
	return "not started"
}

// Log is all that a part has written so far, over all of its lives.
func (cp *ControlPlane) Log(name string) string {
	if p := cp.part(name); p != nil {
		return p.logged()
	}
	return ""
}

// LogFile is where a part writes.
func (cp *ControlPlane) LogFile(name string) string { return cp.path("log/" + name + ".log") }
