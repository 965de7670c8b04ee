/**
 * Audited objects: every type with its fields, in one table.
 *
 * A change can only be recorded of a field that stands here (the compiler and `diffAttributes` hold
 * it), and `field_options` lists this same table, so the filters that are offered are the fields that
 * rows have. A `secret` field is recorded as changed, never with a value.
 *
 * Adding an object: a line here, then `recordChange` in the transaction that changes it.
 */

type FieldKind = 'shown' | 'secret';

interface AuditObject {
  /** As people read it. */
  readonly label: string;
  readonly fields: Readonly<Record<string, FieldKind>>;
}

export const AUDIT_OBJECTS = {
  account: {
    label: 'Account',
    fields: {
      name: 'shown',
      status: 'shown',
      data_center: 'shown',
      sandbox: 'shown',
      plan: 'shown',
      billing_rail: 'shown',
      currency: 'shown',
      timezone: 'shown',
      website: 'shown',
      billing_email: 'shown',
      two_factor_required: 'shown',
      owner_user_id: 'shown',
      address: 'shown',
      products: 'shown',
    },
  },
  environment: {
    label: 'Workspace',
    fields: {
      name: 'shown',
      webhook_signing_key: 'secret',
      phone_identifies: 'shown',
      portal_origins: 'shown',
    },
  },
  user: {
    label: 'User',
    fields: {
      email: 'shown',
      first_name: 'shown',
      last_name: 'shown',
      role: 'shown',
      status: 'shown',
      two_factor_enabled: 'shown',
      environment_ids: 'shown',
      recovery_codes: 'secret',
      open_sessions: 'shown',
      sign_in_code: 'shown',
    },
  },
  identity_provider: {
    label: 'Identity provider',
    fields: {
      issuer: 'shown',
      client_id: 'shown',
      client_secret: 'secret',
      email_domains: 'shown',
      required: 'shown',
      counts_as_two_factors: 'shown',
      new_user_role: 'shown',
      new_user_environment_ids: 'shown',
    },
  },
  service_account: {
    label: 'Service account',
    fields: { name: 'shown', role: 'shown', status: 'shown' },
  },
  api_credential: {
    label: 'API credential',
    fields: {
      name: 'shown',
      type: 'shown',
      environment_id: 'shown',
      service_account_id: 'shown',
      site_id: 'shown',
      secret: 'secret',
      token_hint: 'shown',
      scopes: 'shown',
      ip_allowlist: 'shown',
      read_only: 'shown',
      expires_at: 'shown',
      revoked_at: 'shown',
    },
  },
  reporting_webhook: {
    label: 'Reporting webhook',
    fields: {
      name: 'shown',
      endpoint: 'shown',
      events: 'shown',
      disabled: 'shown',
      full_resolution: 'shown',
      with_content: 'shown',
      standard_webhooks: 'shown',
      signing: 'shown',
      disable_after_days: 'shown',
      rate_limit_per_second: 'shown',
      window_max: 'shown',
      ordering: 'shown',
      headers: 'secret',
      // Names, and a hint of each value by which a reader recognises it.
      header_hints: 'shown',
      endpoint_credentials: 'secret',
      // Fingerprints of certificates, and of OAuth2 all but the secret.
      endpoint_credential_hints: 'shown',
      attribute_filters: 'shown',
      event_names: 'shown',
      with_imports: 'shown',
      with_late: 'shown',
      with_person_attributes: 'shown',
      signing_key: 'secret',
      next_signing_key: 'secret',
      application_id: 'shown',
    },
  },
  delivery: {
    label: 'Delivery',
    fields: {
      origin: 'shown',
      resend_of: 'shown',
      event_id: 'shown',
      event_type: 'shown',
      state: 'shown',
      note: 'shown',
      next_attempt_at: 'shown',
    },
  },
  replay: {
    label: 'Replay',
    fields: {
      since: 'shown',
      until: 'shown',
      event_types: 'shown',
      states: 'shown',
      // Left out: whom it is about is personal data, and entries stay for good.
      person: 'secret',
      rate_per_second: 'shown',
      cancelled: 'shown',
      next_attempt_at: 'shown',
    },
  },
  import: {
    label: 'Import',
    fields: {
      name: 'shown',
      description: 'shown',
      identifier: 'shown',
      data_to_process: 'shown',
      // Such addresses carry the key that opens them.
      data_file_url: 'secret',
      cancelled: 'shown',
    },
  },
  purchase: {
    label: 'Purchase',
    fields: {
      kind: 'shown',
      rail: 'shown',
      status: 'shown',
      content: 'shown',
      review_reason: 'shown',
      refunded: 'shown',
    },
  },
  inbox_preview_run: {
    label: 'Inbox preview run',
    fields: { user_id: 'shown', quantity: 'shown', refunded: 'shown' },
  },
  payment_method: { label: 'Payment method', fields: { default: 'shown' } },
  partner_application: {
    label: 'Partner application',
    fields: { name: 'shown', website: 'shown', logo_url: 'shown', status: 'shown' },
  },
  audit_log_export: {
    label: 'Audit log export',
    fields: { format: 'shown', filters: 'shown', downloaded_at: 'shown' },
  },
  console_session: {
    label: 'Session in the console',
    fields: { user_id: 'shown', credential_id: 'shown', way: 'shown' },
  },
  portal_link: {
    label: 'Link to the portal',
    fields: {
      for: 'shown',
      webhook_ids: 'shown',
      application_id: 'shown',
      capabilities: 'shown',
      expires_at: 'shown',
      opened_at: 'shown',
    },
  },
  feed: {
    label: 'Feed',
    fields: {
      events: 'shown',
      event_names: 'shown',
      attribute_filters: 'shown',
      full_resolution: 'shown',
      with_content: 'shown',
      with_imports: 'shown',
      with_late: 'shown',
      with_person_attributes: 'shown',
    },
  },
  application: { label: 'Application', fields: { name: 'shown' } },
  event_type: {
    label: 'Event type',
    fields: { description: 'shown', version: 'shown', schema: 'shown', archived: 'shown' },
  },
  /** A user entered a wrong code, or the claims of an identity provider about a user were refused. */
  failed_sign_in: {
    label: 'Failed sign-in',
    fields: { user_id: 'shown', factor: 'shown' },
  },
  /** A token was used on an account that is not its own, and refused. */
  credential_misuse: {
    label: 'Refused use of a credential',
    fields: { credential_id: 'shown', asked_account_id: 'shown' },
  },
} as const satisfies Record<string, AuditObject>;

export type AuditObjectType = keyof typeof AUDIT_OBJECTS;

/** The state of an object as far as it is audited; a field that is left out counts as null. */
export type AuditState<Type extends AuditObjectType> = Readonly<
  Partial<Record<keyof (typeof AUDIT_OBJECTS)[Type]['fields'], unknown>>
>;

export type AuditAction = 'created' | 'updated' | 'deleted';
