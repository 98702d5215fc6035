package capi

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// version is the Kubernetes version of every Machine and control plane.
const version = "v1.36.3"

// Workers is what an operator writes to make a group.
type Workers struct {
	Name, Cluster  string
	Replicas       int // -1 leaves the field out
	Min, Max       string
	Annotations    map[string]string
	Labels         map[string]string
	TemplateLabels map[string]string
	Template       string // name of the EmulatedMachineTemplate
	Secret         string // bootstrap.dataSecretName; empty: "bootstrap"
	FailureDomain  string
	Taints         []map[string]any
}

// Put creates or replaces an object.
func (c *Cloud) Put(ctx context.Context, resource string, object map[string]any) error {
	u := &unstructured.Unstructured{Object: object}
	_, err := c.Resource(resource).Create(ctx, u, metav1.CreateOptions{})
	return err
}

// PutCluster makes a Cluster object.
func (c *Cloud) PutCluster(ctx context.Context, name string, topology map[string]any) error {
	spec := map[string]any{"controlPlaneEndpoint": map[string]any{"host": "127.0.0.1", "port": int64(6443)}}
	if topology != nil {
		spec["topology"] = topology
	}
	if c.RealCore {
		spec["infrastructureRef"] = map[string]any{"apiGroup": InfraGroup, "kind": "EmulatedCluster", "name": name}
		spec["controlPlaneRef"] = map[string]any{"apiGroup": InfraGroup, "kind": "EmulatedControlPlane", "name": name}
		if err := c.putAccess(ctx, name); err != nil {
			return err
		}
	}
	return c.Put(ctx, "clusters", map[string]any{"apiVersion": c.Group + "/" + c.Version, "kind": "Cluster",
		"metadata": map[string]any{"name": name, "namespace": c.Namespace}, "spec": spec})
}

// putAccess makes what the infrastructure and the control plane provider leave of a
// cluster: their objects, and the Secret by which Cluster API reaches its Nodes.
func (c *Cloud) putAccess(ctx context.Context, name string) error {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{Server: c.Config.Host, CertificateAuthorityData: c.Config.CAData}
	kubeconfig.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: c.Config.CertData, ClientKeyData: c.Config.KeyData}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: "admin"}
	kubeconfig.CurrentContext = name
	raw, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		return err
	}
	labels := map[string]any{c.Group + "/cluster-name": name}
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
		"metadata": map[string]any{"name": name + "-kubeconfig", "labels": labels}, "stringData": map[string]any{"value": string(raw)}}}
	if _, err := c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(c.Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return err
	}
	for resource, kind := range map[string]string{"emulatedcontrolplanes": "EmulatedControlPlane", "emulatedclusters": "EmulatedCluster"} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": InfraGroup + "/v1beta2", "kind": kind,
			"metadata": map[string]any{"name": name, "labels": labels}, "spec": map[string]any{"version": version}}}
		if _, err := c.infra(resource).Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// PutTemplate makes an infrastructure template; status, which its provider would write,
// may be nil.
func (c *Cloud) PutTemplate(ctx context.Context, name, flavor string, status map[string]any) error {
	r := c.infra("emulatedmachinetemplates")
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": InfraGroup + "/v1beta2", "kind": "EmulatedMachineTemplate",
		"metadata": map[string]any{"name": name, "namespace": c.Namespace},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"flavor": flavor}}}}}
	made, err := r.Create(ctx, u, metav1.CreateOptions{})
	if err != nil || status == nil {
		return err
	}
	made.Object["status"] = status
	_, err = r.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	return err
}

// Describe replaces what an infrastructure template's provider tells of its machines.
func (c *Cloud) Describe(ctx context.Context, name string, status map[string]any) error {
	r := c.infra("emulatedmachinetemplates")
	u, err := r.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	u.Object["status"] = status
	_, err = r.UpdateStatus(ctx, u, metav1.UpdateOptions{})
	return err
}

// PutDeployment makes a MachineDeployment.
func (c *Cloud) PutDeployment(ctx context.Context, w Workers) error {
	return c.Put(ctx, "machinedeployments", c.workers("MachineDeployment", w))
}

// PutSet makes a MachineSet of its own.
func (c *Cloud) PutSet(ctx context.Context, w Workers) error {
	return c.Put(ctx, "machinesets", c.workers("MachineSet", w))
}

// PutPool makes a MachinePool.
func (c *Cloud) PutPool(ctx context.Context, w Workers) error {
	return c.Put(ctx, "machinepools", c.workers("MachinePool", w))
}

func (c *Cloud) workers(kind string, w Workers) map[string]any {
	if w.Secret == "" {
		w.Secret = "bootstrap"
	}
	annotations := map[string]any{}
	if w.Min != "" {
		annotations[c.Group+"/cluster-api-autoscaler-node-group-min-size"] = w.Min
	}
	if w.Max != "" {
		annotations[c.Group+"/cluster-api-autoscaler-node-group-max-size"] = w.Max
	}
	for k, v := range w.Annotations {
		annotations[k] = v
	}
	labels := map[string]any{c.Group + "/cluster-name": w.Cluster}
	maps.Copy(labels, anyMap(w.Labels))
	infra := map[string]any{"kind": "EmulatedMachineTemplate", "name": w.Template}
	if c.Version == "v1beta1" {
		infra["apiVersion"], infra["namespace"] = InfraGroup+"/v1beta1", c.Namespace
	} else {
		infra["apiGroup"] = InfraGroup
	}
	machine := map[string]any{"clusterName": w.Cluster, "version": version,
		"bootstrap": map[string]any{"dataSecretName": w.Secret}, "infrastructureRef": infra}
	if w.FailureDomain != "" {
		machine["failureDomain"] = w.FailureDomain
	}
	if len(w.Taints) > 0 {
		var list []any
		for _, t := range w.Taints {
			list = append(list, t)
		}
		machine["taints"] = list
	}
	own := map[string]any{"emulated/group": w.Name}
	maps.Copy(own, anyMap(w.TemplateLabels))
	spec := map[string]any{"clusterName": w.Cluster,
		"template": map[string]any{"metadata": map[string]any{"labels": own}, "spec": machine}}
	if kind != "MachinePool" {
		spec["selector"] = map[string]any{"matchLabels": map[string]any{"emulated/group": w.Name}}
	}
	if w.Replicas >= 0 {
		spec["replicas"] = int64(w.Replicas)
	}
	return map[string]any{"apiVersion": c.Group + "/" + c.Version, "kind": kind,
		"metadata": map[string]any{"name": w.Name, "namespace": c.Namespace, "annotations": annotations, "labels": labels},
		"spec":     spec}
}

func anyMap(m map[string]string) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	return out
}
