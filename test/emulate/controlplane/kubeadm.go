package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

const (
	// advertised is TEST-NET-3: kubeadm refuses a loopback advertiseAddress and takes
	// any other literal unchecked. Nothing ever dials it: every kubeconfig is pointed
	// back to 127.0.0.1, and the endpoint reconciler is off.
	advertised = "203.0.113.1"
	criSocket  = "unix:///run/containerd/containerd.sock"
)

type object = map[string]any

// writeKubeadmConfig writes what `kubeadm init` would be given on a real leader.
func (cp *ControlPlane) writeKubeadmConfig() error {
	kubelet := object{
		"apiVersion":         "kubelet.config.k8s.io/v1beta1",
		"kind":               "KubeletConfiguration",
		"serverTLSBootstrap": true,
		"rotateCertificates": true,
	}
	if cp.opts.NodeLeaseSeconds > 0 {
		kubelet["nodeLeaseDurationSeconds"] = cp.opts.NodeLeaseSeconds
	}
	docs := []object{
		{
			"apiVersion":       cp.kubeadmAPI(),
			"kind":             "InitConfiguration",
			"localAPIEndpoint": object{"advertiseAddress": advertised, "bindPort": cp.ports.api},
			"nodeRegistration": object{"name": "control-plane", "criSocket": criSocket},
		},
		{
			"apiVersion":           cp.kubeadmAPI(),
			"kind":                 "ClusterConfiguration",
			"kubernetesVersion":    cp.bin.Version,
			"clusterName":          cp.opts.ClusterName,
			"certificatesDir":      cp.pki(""),
			"controlPlaneEndpoint": "127.0.0.1:" + strconv.Itoa(cp.ports.api),
			"apiServer":            object{"certSANs": append([]string{"127.0.0.1", "localhost"}, cp.opts.CertSANs...)},
			"networking":           object{"serviceSubnet": cp.opts.ServiceCIDR, "podSubnet": cp.opts.PodCIDR, "dnsDomain": "cluster.local"},
		},
		kubelet,
	}
	var out bytes.Buffer
	for _, doc := range docs {
		text, err := yaml.Marshal(doc)
		if err != nil {
			return fmt.Errorf("write kubeadm configuration: %w", err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return os.WriteFile(cp.kubeadmConfig(), out.Bytes(), 0o600)
}

// kubeadmAPI: v1beta4 came with 1.31.
func (cp *ControlPlane) kubeadmAPI() string {
	if majorMinor(cp.bin.Version) == "1.30" {
		return "kubeadm.k8s.io/v1beta3"
	}
	return "kubeadm.k8s.io/v1beta4"
}

func (cp *ControlPlane) kubeadmConfig() string { return filepath.Join(cp.dir, "kubeadm.yaml") }

// phase runs one real `kubeadm init phase`. Its output is kept in a file that only
// the owner reads, and is part of the error.
func (cp *ControlPlane) phase(ctx context.Context, args ...string) error {
	name := strings.Join(args[:min(2, len(args))], " ")
	cmd := exec.CommandContext(ctx, cp.bin.Path(Kubeadm), append([]string{"init", "phase"}, append(args, "--config", cp.kubeadmConfig())...)...)
	cmd.Dir = cp.dir
	cmd.Env = append(os.Environ(), "KUBECONFIG=")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	c, err := spawn(cmd)
	if err != nil {
		return fmt.Errorf("kubeadm %s: %w", name, err)
	}
	<-c.done
	file := filepath.Join(cp.dir, "log", "kubeadm-"+strings.ReplaceAll(args[0], "/", "-")+".log")
	_ = os.WriteFile(file, out.Bytes(), 0o600) // a record for people; the error below carries the text
	if c.err != nil {
		return errors.Join(fmt.Errorf("kubeadm %s: %w", name, c.err), errors.New(tail(out.String(), 25)))
	}
	return nil
}

var serverLine = regexp.MustCompile(`(?m)^(\s*server: )https://.*$`)

// writeKubeconfigs lets kubeadm write admin.conf, super-admin.conf and those of the
// parts, and points all of them to the loopback.
func (cp *ControlPlane) writeKubeconfigs(ctx context.Context) error {
	if err := cp.phase(ctx, "kubeconfig", "all", "--kubeconfig-dir", cp.conf("")); err != nil {
		return err
	}
	files, err := filepath.Glob(cp.conf("*.conf"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("read kubeconfigs: kubeadm wrote none to %s", cp.conf(""))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read kubeconfigs: %w", err)
		}
		text = serverLine.ReplaceAll(text, []byte("${1}"+cp.Endpoint()))
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return fmt.Errorf("write kubeconfigs: %w", err)
		}
	}
	return nil
}

// furnish leaves in the cluster what kubeadm init leaves there: the binding for
// admin.conf, the uploaded configurations, cluster-info and the RBAC of joining.
func (cp *ControlPlane) furnish(ctx context.Context) error {
	super, err := clientFor(cp.conf("super-admin.conf"))
	if err != nil {
		return err
	}
	// kubeadm creates this binding only with its own default kubeconfig path.
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeadm:cluster-admins"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "kubeadm:cluster-admins"}},
	}
	if _, err := super.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("bind kubeadm:cluster-admins: %w", err)
	}
	// The authorizer learns of the binding from its own watch, a moment later.
	if err := cp.until(ctx, "admin.conf to be authorized", func(ctx context.Context) error {
		_, err := cp.client.CoreV1().ConfigMaps("kube-system").List(ctx, metav1.ListOptions{Limit: 1})
		return err
	}); err != nil {
		return err
	}
	admin := []string{"--kubeconfig", cp.Kubeconfig()}
	if err := cp.uploadConfig(ctx, super, admin); err != nil {
		return err
	}
	if err := cp.phase(ctx, append([]string{"bootstrap-token", "--skip-token-print"}, admin...)...); err != nil {
		return err
	}
	if cp.opts.KubeadmToken {
		return nil
	}
	return cp.dropTokens(ctx)
}

// uploadConfig: the kubeadm of minors before 1.36 also writes the runtime's socket on the leader's
// own Node, and waits a minute for it; it gets one meanwhile.
func (cp *ControlPlane) uploadConfig(ctx context.Context, super kubernetes.Interface, admin []string) error {
	args := append([]string{"upload-config", "all"}, admin...)
	if cp.bin.Version >= "v1.36" {
		return cp.phase(ctx, args...)
	}
	nodes, leader := super.CoreV1().Nodes(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "control-plane"}}
	if _, err := nodes.Create(ctx, leader, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the leader's Node: %w", err)
	}
	return errors.Join(cp.phase(ctx, args...), nodes.Delete(ctx, leader.Name, metav1.DeleteOptions{}))
}

// dropTokens deletes the token that kubeadm always makes (24 hours, printed in its
// log on a real leader): nobody here uses it.
func (cp *ControlPlane) dropTokens(ctx context.Context) error {
	err := cp.client.CoreV1().Secrets("kube-system").DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"})
	if err != nil {
		return fmt.Errorf("delete the token of kubeadm init: %w", err)
	}
	return nil
}

func clientFor(kubeconfig string) (kubernetes.Interface, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	cfg.QPS = -1
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return client, nil
}
