if [ ! -x "$bin/ecr-credential-provider" ]; then
  fetch ecr-credential-provider "$ECR" "$tmp/ecr-credential-provider"
  place "$tmp/ecr-credential-provider"
fi
mkdir -p /etc/kubernetes
cat >/etc/kubernetes/ecr-credential-provider.yaml <<'PROVIDERS'
apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: ecr-credential-provider
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  defaultCacheDuration: 12h
  matchImages: ['*.dkr.ecr.*.amazonaws.com', '*.dkr.ecr.*.amazonaws.com.cn', '*.dkr.ecr-fips.*.amazonaws.com']
PROVIDERS
