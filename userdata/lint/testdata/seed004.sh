#!/usr/bin/env bash

# Set cluster name here
CLUSTER_NAME="clustername"

# Set join info here
JOIN_TOKEN=
JOIN_CERT_HASH=
JOIN_ENDPOINT=

### SHARED SECTION ###

# Set deployment versions here
CNI_VERSION="v0.8.2"
CRICTL_VERSION="v1.17.0"
CNI_DIR=/opt/cni/bin
DOWNLOAD_DIR=/opt/bin
# This is the version of Kubernetes to use
# Get current from: curl -sSL https://dl.k8s.io/release/stable.txt
KUBERNETES_VERSION="v1.19.3"
# This is the version of the Kubernetes "release" tooling to get the service and config files from
# It doesn't auto-update.
RELEASE_VERSION="v0.4.0"
# Now we need the basic cluster services
# Version of Flannel networking to get the YAML from
FLANNEL_VERSION="v0.13.0"
# Version of node CSR signign bot to run
RUBBER_STAMP_VERSION=v0.3.1
# Version of the autoscaler to run
AUTOSCALER_VERSION="1.19.0"
# Version of metrics service to install for `kubectl top nodes`
METRICS_API_VERSION=v0.3.7

sudo mkdir -p ${CNI_DIR}
curl -L "https://github.com/containernetworking/plugins/releases/download/${CNI_VERSION}/cni-plugins-linux-amd64-${CNI_VERSION}.tgz" | sudo tar -C $CNI_DIR -xz
sudo mkdir -p ${DOWNLOAD_DIR}
curl -L "https://github.com/kubernetes-sigs/cri-tools/releases/download/${CRICTL_VERSION}/crictl-${CRICTL_VERSION}-linux-amd64.tar.gz" | sudo tar -C $DOWNLOAD_DIR -xz

cd $DOWNLOAD_DIR
sudo curl -L --remote-name-all https://storage.googleapis.com/kubernetes-release/release/${KUBERNETES_VERSION}/bin/linux/amd64/{kubeadm,kubelet,kubectl}
sudo chmod +x {kubeadm,kubelet,kubectl}

curl -sSL "https://raw.githubusercontent.com/kubernetes/release/${RELEASE_VERSION}/cmd/kubepkg/templates/latest/deb/kubelet/lib/systemd/system/kubelet.service" | sed "s:/usr/bin:${DOWNLOAD_DIR}:g" | sudo tee /etc/systemd/system/kubelet.service
sudo mkdir -p /etc/systemd/system/kubelet.service.d
curl -sSL "https://raw.githubusercontent.com/kubernetes/release/${RELEASE_VERSION}/cmd/kubepkg/templates/latest/deb/kubeadm/10-kubeadm.conf" | sed "s:/usr/bin:${DOWNLOAD_DIR}:g" | sudo tee /etc/systemd/system/kubelet.service.d/10-kubeadm.conf

sudo systemctl enable --now kubelet

### WORKER SECTION ###

# Be a worker

sudo kubeadm join ${JOIN_ENDPOINT} --config /dev/stdin <<EOF
apiVersion: kubeadm.k8s.io/v1beta2
kind: JoinConfiguration
nodeRegistration:
  kubeletExtraArgs:
    volume-plugin-dir: "/opt/libexec/kubernetes/kubelet-plugins/volume/exec/"
    cloud-provider: aws
discovery:
  bootstrapToken:
    apiServerEndpoint: ${JOIN_ENDPOINT}
    token: ${JOIN_TOKEN}
    caCertHashes:
    - "${JOIN_CERT_HASH}"
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: systemd
EOF
