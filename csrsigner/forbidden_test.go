package csrsigner

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// apiServer is a cluster as far as R9 reads it: a server with a certificate, the Service,
// both sources of service ranges, and the endpoints.
func apiServer(t *testing.T) (*fake.Clientset, *rest.Config) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return fake.NewClientset(
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}, Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.1"}}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"}, Data: map[string]string{
			"ClusterConfiguration": "controlPlaneEndpoint: '[2001:DB8::64]:6443'\napiServer: {certSANs: [api.example.org, 203.0.113.7, \"fd00:7:0::7\"]}\nnetworking: {serviceSubnet: 10.96.0.0/12, dnsDomain: corp.example}"}},
		&networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.200.0.0/16"}}},
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes", Labels: map[string]string{"kubernetes.io/service-name": "kubernetes"}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.2"}}}},
	), &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// refuse makes the API server answer err to a list.
func refuse(client *fake.Clientset, verb, resource string, err error) {
	client.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

func forbidding(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no right"))
}

func TestReadForbidden(t *testing.T) {
	client, config := apiServer(t)
	b, err := ReadForbidden(t.Context(), kubetest.Client(client), config, Config{})
	if err != nil || b.Unread != "" || b.DNSDomain != "corp.example" || len(b.Ranges) != 2 || !slices.Contains(b.Names, "api.example.org") {
		t.Fatalf("%+v, %v", b, err)
	}
	if b.Endpoint != "2001:db8::64" {
		t.Errorf("endpoint %q", b.Endpoint)
	}
	for _, a := range []string{"10.96.0.1", "10.0.0.2", "127.0.0.1", "2001:db8::64", "203.0.113.7", "fd00:7::7"} {
		if !slices.Contains(b.Addresses, addr(a)) {
			t.Errorf("%s is not protected: %v", a, b.Addresses)
		}
	}
}

// TestForbiddenUnread: an input of R9 that may not be read is named, in what is told and
// in the journal; one that the cluster does not have is no fault.
func TestForbiddenUnread(t *testing.T) {
	for name, c := range map[string]struct {
		verb, resource string
		err            error
		want           string // in Unread; empty: nothing is
	}{
		"ServiceCIDRs refused":   {"list", "servicecidrs", forbidding("servicecidrs"), "list ServiceCIDRs"},
		"ServiceCIDRs not known": {"list", "servicecidrs", apierrors.NewNotFound(schema.GroupResource{Resource: "servicecidrs"}, ""), ""},
		"endpoints refused":      {"list", "endpointslices", forbidding("endpointslices"), "list EndpointSlices"},
		"kubeadm-config refused": {"get", "configmaps", forbidding("configmaps"), "kubeadm-config"},
		"no kubeadm":             {"get", "configmaps", apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "kubeadm-config"), ""},
	} {
		client, config := apiServer(t)
		refuse(client, c.verb, c.resource, c.err)
		b, err := ReadForbidden(t.Context(), kubetest.Client(client), config, Config{})
		if err != nil || (c.want == "") != (b.Unread == "") || !strings.Contains(b.Unread, c.want) {
			t.Errorf("%s: %q, %v: want %q", name, b.Unread, err, c.want)
			continue
		}
		said := &lines{}
		log, _ := logtest.NewNullLogger()
		log.AddHook(said)
		s := New(Config{}, Deps{Client: kubetest.Client(client), Rest: config, Informers: kube.NewInformers(kubetest.Client(client), nil), Log: logrus.NewEntry(log)})
		for range 2 {
			s.forbiddenAt = s.forbiddenAt.Add(-forbiddenTTL)
			s.protected(context.Background(), noon)
		}
		told := 0
		for _, e := range said.entries {
			if e.Data["rule"] == "R9" && strings.Contains(e.Data["why"].(string), c.want) {
				told++
			}
		}
		if want := map[bool]int{true: 1}[c.want != ""]; told != want {
			t.Errorf("%s: told %d times, want %d", name, told, want)
		}
	}
	client, config := apiServer(t)
	refuse(client, "list", "servicecidrs", forbidding("servicecidrs"))
	refuse(client, "get", "configmaps", forbidding("configmaps"))
	if b, err := ReadForbidden(t.Context(), kubetest.Client(client), config, Config{}); err == nil || !strings.Contains(err.Error(), "AUTOSCALER_CSR_SERVICE_CIDRS") {
		t.Errorf("without any service range: %+v, %v", b, err)
	}
}
