/** Schemas of the kinds that `infra/kubernetes` uses. They are kept in the repository, with the kinds and versions. */

/** The part of JSON Schema that the descriptions of Kubernetes use. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly pattern?: string;
  readonly enum?: readonly unknown[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema | undefined>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-group-version-kind'?: readonly {
    readonly group: string;
    readonly version: string;
    readonly kind: string;
  }[];
}

export interface KubernetesSchemas {
  /** `apps/v1 Deployment` → its schema. */
  readonly kinds: Readonly<Record<string, Schema>>;
  readonly definitions: Readonly<Record<string, Schema>>;
}

export const SCHEMAS_FILE = new URL('../infra/kubernetes/schemas.json', import.meta.url);

/** Of Kubernetes 1.34.2, the Gateway API 1.4.1 and KEDA 2.18.3 (`docs/operations/kubernetes.md`, Kubernetes). */
export const KINDS = [
  'v1 ConfigMap',
  'v1 Namespace',
  'v1 Service',
  'apps/v1 Deployment',
  'apps/v1 StatefulSet',
  'autoscaling/v2 HorizontalPodAutoscaler',
  'batch/v1 Job',
  'networking.k8s.io/v1 Ingress',
  'networking.k8s.io/v1 NetworkPolicy',
  'policy/v1 PodDisruptionBudget',
  'gateway.networking.k8s.io/v1 Gateway',
  'gateway.networking.k8s.io/v1 HTTPRoute',
  'keda.sh/v1alpha1 ScaledObject',
] as const;
