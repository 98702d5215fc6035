package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/secret"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// AdminConf is kubeadm's kubeconfig.
const AdminConf = "/etc/kubernetes/admin.conf"

// Options are what a person asks for.
type Options struct {
	AdminConf string
	Set       []Setting // variables of agent.env
	Renew     bool      // the certificates alone
	Publish   bool      // make this machine's settings those that further leaders get
	// The following stay at an uninstallation.
	KeepConfig, KeepState, KeepCluster bool
}

// ready refuses a machine that the agent cannot be installed on.
func (h Host) ready() error {
	if !h.exists("/run/systemd/system") {
		return errors.New("systemd does not run here: run this command on the control-plane machine itself")
	}
	return nil
}

// admin makes the administrator's client.
func (o Options) admin(ctx context.Context) (*rest.Config, *kube.Client, error) {
	if _, err := os.Stat(o.AdminConf); err != nil {
		return nil, nil, fmt.Errorf("%w: run this on a control-plane machine of kubeadm as root, or name an administrator's kubeconfig with --kubeconfig", err)
	}
	cfg, client, err := clients.Typed(ctx, config.Config{Kubeconfig: o.AdminConf})
	if err != nil {
		return nil, nil, err
	}
	return cfg, client, rest.LoadTLSFiles(cfg)
}

// Install lists the steps of an installation or an upgrade. It changes nothing.
func Install(ctx context.Context, h Host, o Options, now time.Time) ([]Step, error) {
	if err := JudgeSettings(o.Set); err != nil {
		return nil, err
	}
	if err := h.ready(); err != nil {
		return nil, err
	}
	admin, client, err := o.admin(ctx)
	if err != nil {
		return nil, err
	}
	var others shared
	if !o.Renew {
		if others, err = readShared(ctx, client); err != nil {
			return nil, err
		}
		o.Set = beside(o.Set, others.env)
	}
	listener, err := h.listener(o.Set, now)
	if err != nil {
		return nil, err
	}
	if o.Renew {
		return append([]Step{h.certificate(client, admin, now)}, listener...), nil
	}
	settings, err := h.settings(ctx, o, client, others)
	if err != nil {
		return nil, err
	}
	unitFiles, err := h.unitSteps()
	if err != nil {
		return nil, err
	}
	cluster, err := apply(ctx, client, "admission-policy.yaml", "rbac.yaml")
	if err != nil {
		return nil, err
	}
	credential, err := h.credential(admin, client, now)
	if err != nil {
		return nil, err
	}
	steps := []Step{h.user(), h.directory(), cluster}
	steps = append(steps, credential...)
	steps = append(append(steps, settings...), listener...)
	steps = append(steps, h.link())
	steps = append(steps, unitFiles...)
	// A new certificate needs no restart: client-go reads its file again.
	changed := slices.ContainsFunc(steps, func(s Step) bool {
		return s.do != nil && (s.About == "unit" || s.About == "kubeconfig" || s.About == "settings")
	})
	return append(steps, h.restart(changed)...), nil
}

// JudgeSettings refuses names that the agent does not read, and values that it would refuse.
func JudgeSettings(list []Setting) error {
	known := config.Variables()
	var errs []error
	for _, s := range list {
		if slices.ContainsFunc(known, func(v config.Variable) bool { return v.Name == s.Name }) {
			continue
		}
		if answer := config.AnswerToFlag(s.Name); answer != "" {
			errs = append(errs, fmt.Errorf("--set %s: it %s", s.Name, answer))
		} else if strings.HasPrefix(s.Name, config.Prefix) || !strings.Contains(s.Name, "_") || s.Name != strings.ToUpper(s.Name) {
			errs = append(errs, fmt.Errorf("--set %s: it is not a variable of this agent (autoscaler-agent check --print-env lists the variables)", s.Name))
		}
	}
	if len(errs) == 0 {
		return config.JudgeSet(pairs(list))
	}
	return errors.Join(errs...)
}

// Uninstall lists the steps that take the agent off. It changes nothing.
func Uninstall(ctx context.Context, h Host, o Options) ([]Step, error) {
	if err := h.ready(); err != nil {
		return nil, err
	}
	var steps []Step
	for _, name := range []string{unit, renewTimer} {
		if h.exists(ownUnits+name) || h.exists(packagedUnits+name) {
			steps = append(steps, change("service", "systemctl disable --now "+name, h.systemctl("disable", "--now", name)))
		}
	}
	if !o.KeepCluster {
		_, client, err := o.admin(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w (--keep-cluster leaves the cluster's objects)", err)
		}
		s, err := withdraw(ctx, client, "admission-policy.yaml", "rbac.yaml")
		if err != nil {
			return nil, err
		}
		steps = append(steps, s, leavings(client))
	}
	for _, name := range unitFiles {
		steps = append(steps, h.remove("unit", ownUnits+name)...)
	}
	steps = append(steps, change("unit", "systemctl daemon-reload", h.systemctl("daemon-reload")))
	if to, err := os.Readlink(h.path(joinLink)); err == nil && to == joinFile {
		steps = append(steps, h.remove("link", joinLink)...)
	}
	if !o.KeepConfig {
		steps = append(steps, h.remove("configuration", configDir)...)
	}
	if !o.KeepState {
		steps = append(steps, h.remove("state", stateDir)...)
	}
	if _, found := h.GroupID(User); found && !o.KeepConfig && !o.KeepState {
		steps = append(steps, change("user", "remove the user "+User, func(ctx context.Context) error {
			_, err := h.Run(ctx, "", "userdel", User)
			return err
		}))
	}
	return steps, nil
}

// statusPage is the ConfigMap that Cluster Autoscaler and the agent report in.
const statusPage = "cluster-autoscaler-status"

// leavings is the step that deletes the agent's Lease, join tokens, join information,
// status page and published settings in kube-system. A status page that a Cluster Autoscaler writes stays.
func leavings(client *kube.Client) Step {
	return change("cluster", "delete the agent's Lease, join tokens, join information, status page and published settings in kube-system", func(ctx context.Context) error {
		const ns = "kube-system"
		core, all := client.CoreV1(), metav1.DeleteOptions{}
		errs := []error{ignoreNotFound(client.CoordinationV1().Leases(ns).Delete(ctx, User, all))}
		page, err := core.ConfigMaps(ns).Get(ctx, statusPage, metav1.GetOptions{})
		ours := err == nil && !slices.ContainsFunc(page.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager != User })
		if ours {
			err = core.ConfigMaps(ns).Delete(ctx, statusPage, all)
		}
		errs = append(errs, ignoreNotFound(err), ignoreNotFound(core.ConfigMaps(ns).Delete(ctx, sharedName, all)))
		info, err := core.Secrets(ns).Get(ctx, secret.Name, metav1.GetOptions{})
		if err == nil && info.Labels[secret.Label] != "" {
			err = core.Secrets(ns).Delete(ctx, secret.Name, all)
		}
		errs = append(errs, ignoreNotFound(err))
		secrets, err := core.Secrets(ns).List(ctx, metav1.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"})
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		pool := bootstrap.PoolNames()
		for _, s := range secrets.Items {
			if slices.Contains(pool, s.Name) {
				errs = append(errs, ignoreNotFound(core.Secrets(ns).Delete(ctx, s.Name, all)))
			}
		}
		return errors.Join(errs...)
	})
}
