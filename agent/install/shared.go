package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

const (
	// sharedName is the ConfigMap in kube-system by which the first leader's settings reach the
	// second one. install writes it as an administrator; the agent neither reads nor writes it.
	sharedName = "autoscaler-agent-settings"
	sharedEnv  = "agent.env"
	sharedFile = "groups.yaml"
	groupsName = config.Prefix + "_GROUPS_FILE"
	groupsFile = "/etc/autoscaler-agent/groups.yaml"
)

// ofTheMachine are settings that each leader has of its own.
var ofTheMachine = []string{config.Prefix + "_NODE_NAME", config.Prefix + "_CSR_SELF_NAMES"}

// shared is what the leaders of a cluster have in common: the agent's own variables, none of
// which is a secret, and groups.yaml. Variables of other programs (AWS_..., OS_...) may be secrets
// and are not published.
type shared struct {
	there  bool
	env    []Setting
	groups string
	object *corev1.ConfigMap
}

// readShared reads what another leader has published. Only variables that this agent knows count.
func readShared(ctx context.Context, client *kube.Client) (shared, error) {
	m, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, sharedName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return shared{}, nil
	}
	if err != nil {
		return shared{}, fmt.Errorf("read what another leader has published: %w", err)
	}
	vars, err := config.ParseEnvFile(m.Data[sharedEnv])
	if err != nil {
		return shared{}, fmt.Errorf("ConfigMap kube-system/%s, %s: %w (correct it, or delete the ConfigMap: install publishes this machine's settings then)", sharedName, sharedEnv, err)
	}
	return shared{there: true, env: sharable(vars), groups: m.Data[sharedFile], object: m}, nil
}

// sharable are the agent's own variables but for those of one machine, sorted.
func sharable(vars [][2]string) (out []Setting) {
	known := config.Variables()
	for _, v := range vars {
		if slices.ContainsFunc(known, func(k config.Variable) bool { return k.Name == v[0] }) && !slices.Contains(ofTheMachine, v[0]) {
			out = append(out, Setting{v[0], v[1]})
		}
	}
	slices.SortFunc(out, func(a, b Setting) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// beside are the settings of others that set does not name.
func beside(set, others []Setting) []Setting {
	out := slices.Clone(set)
	for _, s := range others {
		if !slices.ContainsFunc(set, func(o Setting) bool { return o.Name == s.Name }) {
			out = append(out, s)
		}
	}
	return out
}

// groupsSteps bring the published groups.yaml to a machine that has none, and let the agent's group
// read one that root alone reads.
func (h Host) groupsSteps(s shared, has map[string]string) ([]Step, error) {
	name := cmp.Or(has[groupsName], groupsFile)
	own, err := h.readIf(name)
	if err != nil || own == nil && s.groups == "" {
		return nil, err
	}
	if own != nil {
		st, err := os.Stat(h.path(name))
		if err != nil || st.Mode()&0o004 != 0 || st.Mode()&0o040 != 0 && h.owned(st) {
			return nil, err
		}
		return []Step{change("groups", "let group "+User+" read "+name, func(context.Context) error {
			return errors.Join(os.Chmod(h.path(name), 0o640), h.own(name)) // #nosec G302 -- the agent reads it
		})}, nil
	}
	return []Step{h.write("groups", name, []byte(s.groups), 0o640)}, nil
}

// share is the step that publishes this machine's settings for further leaders. What another
// machine has published stays unless the operator asks: the step says what differs.
func (h Host) share(client *kube.Client, s shared, env string, publish bool) (Step, error) {
	const about = "shared"
	vars, err := config.ParseEnvFile(env)
	if err != nil {
		return Step{}, fmt.Errorf("%s: %w", envFile, err)
	}
	has := map[string]string{}
	for _, v := range vars {
		has[v[0]] = v[1]
	}
	groups, err := h.readIf(cmp.Or(has[groupsName], groupsFile))
	if err != nil {
		return Step{}, err
	}
	mine := shared{env: sharable(vars), groups: string(groups)}
	if groups == nil {
		mine.groups = s.groups // as groupsSteps writes it
	}
	differs := mine.differs(s)
	switch {
	case s.there && len(differs) == 0:
		return present(about, "the settings are those of the other leaders (ConfigMap kube-system/%s)", sharedName), nil
	case s.there && !publish:
		return present(about, "this machine has its own %s: the other leaders' differ (ConfigMap kube-system/%s); install --publish makes this machine's the published ones", strings.Join(differs, ", "), sharedName), nil
	}
	text := fmt.Sprintf("publish %d settings", len(mine.env))
	if mine.groups != "" {
		text += " and groups.yaml"
	}
	text += " for further leaders as ConfigMap kube-system/" + sharedName
	return change(about, text, func(ctx context.Context) error { return mine.publish(ctx, client, s.object) }), nil
}

// differs names the variables, and groups.yaml, that are not alike.
func (s shared) differs(other shared) (out []string) {
	a, b := map[string]string{}, map[string]string{}
	for _, v := range s.env {
		a[v.Name] = v.Value
	}
	for _, v := range other.env {
		b[v.Name] = v.Value
	}
	for _, v := range beside(s.env, other.env) {
		x, mine := a[v.Name]
		y, theirs := b[v.Name]
		if mine != theirs || x != y {
			out = append(out, v.Name)
		}
	}
	if s.groups != other.groups {
		out = append(out, sharedFile)
	}
	return out
}

func (s shared) publish(ctx context.Context, client *kube.Client, old *corev1.ConfigMap) error {
	env := ""
	for _, v := range s.env {
		var err error
		if env, err = config.SetInEnvFile(env, v.Name, v.Value); err != nil {
			return err
		}
	}
	data := map[string]string{sharedEnv: env}
	if s.groups != "" {
		data[sharedFile] = s.groups
	}
	maps := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	if old == nil {
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: sharedName, Namespace: metav1.NamespaceSystem}, Data: data}, metav1.CreateOptions{FieldManager: fieldManager})
		return err
	}
	next := old.DeepCopy()
	next.Data = data
	_, err := maps.Update(ctx, next, metav1.UpdateOptions{FieldManager: fieldManager})
	return err
}
