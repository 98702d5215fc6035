package install

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/internal/apierror"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/units"
)

// object is what of a manifest its address is made of.
type object struct {
	APIVersion, Kind string
	Metadata         struct{ Name, Namespace string }
	data             []byte // JSON
}

// plurals are the kinds that the manifests have.
var plurals = map[string]string{
	"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "Role": "roles", "RoleBinding": "rolebindings",
	"ConfigMap": "configmaps", "ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}

// manifests reads the objects of compiled-in files, in their order.
func manifests(names ...string) ([]object, error) {
	var out []object
	for _, name := range names {
		data, err := units.Files.ReadFile(name)
		if err != nil {
			return nil, err // it is compiled in
		}
		for _, text := range bytes.Split(data, []byte("\n---\n")) {
			var o object
			if o.data, err = yaml.YAMLToJSON(text); err == nil {
				err = yaml.Unmarshal(o.data, &o)
			}
			if err != nil || plurals[o.Kind] == "" {
				return nil, fmt.Errorf("%s: kind %q: %w", name, o.Kind, errors.Join(err, errors.ErrUnsupported))
			}
			out = append(out, o)
		}
	}
	return out, nil
}

func (o object) path() string {
	p := "/apis/" + o.APIVersion
	if !strings.Contains(o.APIVersion, "/") { // the core group
		p = "/api/" + o.APIVersion
	}
	if o.Metadata.Namespace != "" {
		p += "/namespaces/" + o.Metadata.Namespace
	}
	return p + "/" + plurals[o.Kind] + "/" + o.Metadata.Name
}

const fieldManager = "autoscaler-agent-install"

// apply is the step that brings the cluster's objects to the manifests (server-side apply).
// Policies come before the rights that they narrow.
func apply(ctx context.Context, client *kube.Client, files ...string) (Step, error) {
	all, err := manifests(files...)
	if err != nil {
		return Step{}, err
	}
	leaders, err := clients.Leaders(ctx, client)
	if err != nil {
		return Step{}, fmt.Errorf("list the Nodes of the control plane: %s", apierror.Text(err))
	}
	if err := nameLeaders(all, leaders); err != nil {
		return Step{}, err
	}
	of := strings.Join(files, ", ")
	list := slices.DeleteFunc(slices.Clone(all), func(o object) bool { return o.inForce(ctx, client) })
	if len(list) == 0 {
		return present("cluster", "the %d objects of %s are as they should be", len(all), of), nil
	}
	text := fmt.Sprintf("apply %d objects of %s", len(list), of)
	if len(list) < len(all) {
		text = fmt.Sprintf("apply %d of the %d objects of %s: %s", len(list), len(all), of, names(list))
	}
	return change("cluster", text, func(ctx context.Context) error {
		for _, o := range list {
			_, err := o.apply(ctx, client)
			if apierrors.IsNotFound(err) && strings.Contains(o.APIVersion, "admissionregistration") {
				return fmt.Errorf("the cluster has no %s: it needs Kubernetes 1.30 or later", o.Kind)
			}
			if err != nil {
				return fmt.Errorf("%s %s: %s", o.Kind, o.Metadata.Name, apierror.Text(err))
			}
		}
		return nil
	}), nil
}

// nameLeaders adds to the agent's ClusterRole the Nodes whose certificates may be for addresses of the control plane: the
// policies ask for the right to use them, because they cannot look a Node up.
func nameLeaders(list []object, leaders []corev1.Node) error {
	at := slices.IndexFunc(list, func(o object) bool { return o.Kind == "ClusterRole" && o.Metadata.Name == User })
	if at < 0 || len(leaders) == 0 {
		return nil
	}
	var role rbacv1.ClusterRole
	if err := json.Unmarshal(list[at].data, &role); err != nil {
		return err // it is compiled in
	}
	var names []string
	for i := range leaders {
		names = append(names, leaders[i].Name)
	}
	slices.Sort(names)
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{User}, Resources: []string{"controlplanenodes"}, ResourceNames: names, Verbs: []string{"use"}})
	data, err := json.Marshal(map[string]any{"apiVersion": role.APIVersion, "kind": role.Kind, "metadata": map[string]string{"name": role.Name}, "rules": role.Rules})
	list[at].data = data
	return err
}

// apply returns the object as the API server has it then. With dryRun=All among the parameters
// the API server only tells what it would have.
func (o object) apply(ctx context.Context, client *kube.Client, parameters ...string) ([]byte, error) {
	r := client.REST.Patch(types.ApplyPatchType).AbsPath(o.path()).Param("fieldManager", fieldManager).Param("force", "true")
	for _, p := range parameters {
		name, value, _ := strings.Cut(p, "=")
		r = r.Param(name, value)
	}
	return r.SetHeader("Accept", "application/json").Body(o.data).Do(ctx).Raw()
}

// read returns the object as the API server has it.
func (o object) read(ctx context.Context, client *kube.Client) ([]byte, error) {
	return client.REST.Get().AbsPath(o.path()).SetHeader("Accept", "application/json").Do(ctx).Raw()
}

// inForce tells whether applying the object would change nothing. The API server's own apply
// judges that, because it fills in defaults and keeps what others have added. An object that
// cannot be read is not in force: applying it tells why.
func (o object) inForce(ctx context.Context, client *kube.Client) bool {
	now, err := o.read(ctx, client)
	if err != nil {
		return false
	}
	then, err := o.apply(ctx, client, "dryRun=All")
	return err == nil && equalObjects(now, then)
}

// equalObjects compares without what every write changes, and without the status.
func equalObjects(a, b []byte) bool {
	var both [2]map[string]any
	for i, data := range [][]byte{a, b} {
		if json.Unmarshal(data, &both[i]) != nil {
			return false
		}
		delete(both[i], "status")
		if meta, ok := both[i]["metadata"].(map[string]any); ok {
			for _, field := range []string{"managedFields", "generation", "resourceVersion"} {
				delete(meta, field)
			}
		}
	}
	return reflect.DeepEqual(both[0], both[1])
}

// names lists objects for a person.
func names(list []object) string {
	var out []string
	for _, o := range list {
		out = append(out, o.Kind+" "+o.Metadata.Name)
	}
	return strings.Join(out, ", ")
}

// withdraw is the step that deletes the objects of the manifests, rights first.
func withdraw(ctx context.Context, client *kube.Client, files ...string) (Step, error) {
	list, err := manifests(files...)
	if err != nil {
		return Step{}, err
	}
	of := strings.Join(files, ", ")
	list = slices.DeleteFunc(list, func(o object) bool {
		_, err := o.read(ctx, client)
		return apierrors.IsNotFound(err)
	})
	if len(list) == 0 {
		return present("cluster", "the objects of %s are not there", of), nil
	}
	return change("cluster", fmt.Sprintf("delete %d objects of %s", len(list), of), func(ctx context.Context) error {
		for i := len(list) - 1; i >= 0; i-- {
			err := client.REST.Delete().AbsPath(list[i].path()).SetHeader("Accept", "application/json").Do(ctx).Error()
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s %s: %s", list[i].Kind, list[i].Metadata.Name, apierror.Text(err))
			}
		}
		return nil
	}), nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
