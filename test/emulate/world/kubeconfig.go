package world

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// UserKubeconfig signs a client certificate for user and writes a kubeconfig (0600).
func UserKubeconfig(cp *controlplane.ControlPlane, user, to string) (string, error) {
	caPEM, err1 := os.ReadFile(cp.CAFile())
	keyPEM, err2 := os.ReadFile(cp.CAKeyFile())
	if err := errors.Join(err1, err2); err != nil {
		return "", fmt.Errorf("read the cluster CA: %w", err)
	}
	ca, caKey, err := parseCA(caPEM, keyPEM)
	if err != nil {
		return "", err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("make a key for %s: %w", user, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: user},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca, &key.PublicKey, caKey)
	if err != nil {
		return "", fmt.Errorf("sign a certificate for %s: %w", user, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("encode the key of %s: %w", user, err)
	}
	c := clientcmdapi.NewConfig()
	c.Clusters["world"] = &clientcmdapi.Cluster{Server: cp.Endpoint(), CertificateAuthorityData: caPEM}
	c.AuthInfos[user] = &clientcmdapi.AuthInfo{
		ClientCertificateData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		ClientKeyData:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}
	c.Contexts["world"] = &clientcmdapi.Context{Cluster: "world", AuthInfo: user}
	c.CurrentContext = "world"
	return to, clientcmd.WriteToFile(*c, to)
}

func parseCA(certPEM, keyPEM []byte) (*x509.Certificate, any, error) {
	cb, _ := pem.Decode(certPEM)
	kb, _ := pem.Decode(keyPEM)
	if cb == nil || kb == nil {
		return nil, nil, fmt.Errorf("read the cluster CA: not PEM")
	}
	cert, err := x509.ParseCertificate(cb.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("read the cluster CA: %w", err)
	}
	for _, parse := range []func([]byte) (any, error){
		func(b []byte) (any, error) { return x509.ParsePKCS1PrivateKey(b) },
		func(b []byte) (any, error) { return x509.ParseECPrivateKey(b) },
		x509.ParsePKCS8PrivateKey,
	} {
		if key, err := parse(kb.Bytes); err == nil {
			return cert, key, nil
		}
	}
	return nil, nil, fmt.Errorf("read the cluster CA: unknown form of private key")
}
