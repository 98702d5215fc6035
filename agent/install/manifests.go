package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

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
func apply(client *kube.Client, files ...string) (Step, error) {
	list, err := manifests(files...)
	if err != nil {
		return Step{}, err
	}
	return change("cluster", fmt.Sprintf("apply %d objects of %s", len(list), strings.Join(files, ", ")), func(ctx context.Context) error {
		for _, o := range list {
			err := client.REST.Patch(types.ApplyPatchType).AbsPath(o.path()).
				Param("fieldManager", fieldManager).Param("force", "true").
				SetHeader("Accept", "application/json").Body(o.data).Do(ctx).Error()
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

// withdraw is the step that deletes the objects of the manifests, rights first.
func withdraw(client *kube.Client, files ...string) (Step, error) {
	list, err := manifests(files...)
	if err != nil {
		return Step{}, err
	}
	return change("cluster", fmt.Sprintf("delete %d objects of %s", len(list), strings.Join(files, ", ")), func(ctx context.Context) error {
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
