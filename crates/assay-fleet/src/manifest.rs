//! What Kubernetes needs for a fleet: an Indexed Job of agents, and NATS. No operator.

use std::fmt::Write as _;

/// What a manifest is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestOptions {
    /// Number of agents. 1 <= agents
    pub agents: u32,
    /// The image that holds assay.
    pub image: String,
    /// Name of everything, and its namespace where one is given.
    pub name: String,
    /// `None`: that of the context.
    pub namespace: Option<String>,
    /// The secret that holds the URL of the database under the key `url`, and NATS's password under `nats-password`.
    pub secret: String,
    /// CPUs of each agent.
    pub cpus: u32,
    /// Servers that agents may load; empty: any.
    pub allow_db: Vec<String>,
}

/// The official image.
const NATS_IMAGE: &str = "nats:2.10-alpine";

/// The manifest: YAML, to be given to `kubectl apply`.
pub fn manifest(options: &ManifestOptions) -> String {
    let ManifestOptions { agents, image, name, secret, cpus, .. } = options;
    let namespace = options.namespace.as_ref().map_or_else(String::new, |name| format!("\n  namespace: {name}"));
    let mut allowed = String::new();
    for pattern in &options.allow_db {
        let _ = write!(allowed, "\n            - \"--allow-db={}\"", pattern.replace('"', ""));
    }
    format!(
        r#"# The NATS server of the fleet. Its password comes from the secret {secret}:
#   kubectl create secret generic {secret} --from-literal=nats-password=… --from-literal=url=postgres://…
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}-nats{namespace}
data:
  nats.conf: |
    port: 4222
    jetstream {{ store_dir: /data }}
    authorization {{ user: assay, password: $NATS_PASSWORD }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}-nats{namespace}
spec:
  replicas: 1
  selector:
    matchLabels: {{ app: {name}-nats }}
  template:
    metadata:
      labels: {{ app: {name}-nats }}
    spec:
      containers:
        - name: nats
          image: {NATS_IMAGE}
          args: ["-c", "/etc/nats/nats.conf"]
          env:
            - name: NATS_PASSWORD
              valueFrom:
                secretKeyRef: {{ name: {secret}, key: nats-password }}
          ports:
            - containerPort: 4222
          readinessProbe:
            tcpSocket: {{ port: 4222 }}
          volumeMounts:
            - {{ name: config, mountPath: /etc/nats }}
            - {{ name: data, mountPath: /data }}
      volumes:
        - name: config
          configMap: {{ name: {name}-nats }}
        - name: data
          emptyDir: {{}}
---
apiVersion: v1
kind: Service
metadata:
  name: {name}-nats{namespace}
spec:
  selector: {{ app: {name}-nats }}
  ports:
    - port: 4222
      targetPort: 4222
---
# The agents. Each takes the share of its index, and ends when its run is over.
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}-agents{namespace}
spec:
  completions: {agents}
  parallelism: {agents}
  completionMode: Indexed
  backoffLimit: 6
  template:
    metadata:
      labels: {{ app: {name}-agent }}
    spec:
      restartPolicy: Never
      # One agent on each node, where there are enough.
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              podAffinityTerm:
                topologyKey: kubernetes.io/hostname
                labelSelector:
                  matchLabels: {{ app: {name}-agent }}
      containers:
        - name: agent
          image: {image}
          args:
            - agent
            - "--nats=nats://assay:$(NATS_PASSWORD)@{name}-nats:4222"
            - "--share=$(JOB_COMPLETION_INDEX)"
            - --once{allowed}
          env:
            - name: NATS_PASSWORD
              valueFrom:
                secretKeyRef: {{ name: {secret}, key: nats-password }}
            - name: ASSAY_DB
              valueFrom:
                secretKeyRef: {{ name: {secret}, key: url }}
          resources:
            requests: {{ cpu: "{cpus}" }}
            limits: {{ cpu: "{cpus}" }}
          # Scripts of a run are unpacked there.
          volumeMounts:
            - {{ name: tmp, mountPath: /tmp }}
      volumes:
        - name: tmp
          emptyDir: {{}}
"#
    )
}

/// A container build file for the static program beside it.
pub fn container_file() -> &'static str {
    r#"# assay as it is built by `cargo xtask dist` (one static program), and nothing else:
#   podman build -t assay -f Containerfile .
FROM scratch
COPY assay /assay
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["/assay"]
"#
}
