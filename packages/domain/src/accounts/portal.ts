/**
 * The portal: a page for the engineers of a customer. A link opens it and shows a set of webhooks, and no other part of
 * the workspace (`database/src/webhooks/portal-links.ts`). This file has the rights of a link, its times and its
 * appearance.
 *
 * Pure.
 */
import type { Capability } from './capabilities.ts';

/**
 * The rights of a link, each with its capabilities. A portal session has these in place of a role. It can call only the
 * routes that are open to the portal.
 */
export const PORTAL_CAPABILITIES = {
  view: ['workspace.read'],
  /** The endpoint, the name and the headers of a webhook; to pause it; to skip the delivery that blocks it. */
  edit: ['webhooks.edit', 'deliveries.skip'],
  resend: ['deliveries.retry', 'deliveries.replay'],
  rotate: ['webhooks.rotate'],
  create: ['webhooks.create'],
} as const satisfies Record<string, readonly Capability[]>;

export type PortalCapability = keyof typeof PORTAL_CAPABILITIES;

export const PORTAL_CAPABILITY_NAMES = Object.keys(PORTAL_CAPABILITIES) as [PortalCapability];

/** Time from the making of a link in which a browser must open it; it travels from a server to a page that waits for it. */
export const PORTAL_CODE_SECONDS = 60;
/** A session of the portal lives so long at least and at most, from the making of its link. */
export const PORTAL_SECONDS_MIN = 5 * 60;
export const PORTAL_SECONDS_MAX = 7 * 86_400;
/** Links of a workspace that are not over. Each opened page of a customer is one: ten thousand pages at a time. */
export const PORTAL_LINK_COUNT_MAX = 10_000;
export const PORTAL_WEBHOOK_COUNT_MAX = 100;
/**
 * Number of a link's webhooks from which the portal creates no more: all customers of a workspace share its webhooks.
 */
export const PORTAL_MADE_COUNT_MAX = 20;

/**
 * The name of a change's author, as the workspace reads it, if it was made in the portal. It is neither a key nor a
 * user.
 */
export const nameInPortal = (label: string): string => `${label} in the portal`;

/** How a link's page looks. */
export interface PortalTheme {
  readonly name?: string | undefined;
  /** `#rrggbb` */
  readonly accent?: string | undefined;
  readonly color_scheme: 'light' | 'dark' | 'auto';
  /** An image as a `data:` URL. */
  readonly logo?: string | undefined;
}

/** `--surface` of `packages/console/src/styles/tokens.css`; a test holds the two together. */
export const SURFACES = { light: '#ffffff', dark: '#171d20' } as const;

/** Of a button beside its surface (WCAG 2.2, 1.4.11). The text on it is black or white, one of which always has 4.58. */
const CONTRAST_MIN = 3;

/**
 * Why the accent cannot be seen on the page, worded to follow its field's name; undefined if it can.
 *
 * @param accent - `#rrggbb`
 */
export function whyNoAccent(
  accent: string,
  colorScheme: PortalTheme['color_scheme'],
): string | undefined {
  for (const scheme of ['light', 'dark'] as const) {
    if (colorScheme !== 'auto' && colorScheme !== scheme) continue;
    const contrast = contrastOf(accent, SURFACES[scheme]);
    if (contrast < CONTRAST_MIN)
      return `must have a contrast of at least ${CONTRAST_MIN}:1 to the ${scheme} page; it has ${contrast.toFixed(2)}:1`;
  }
  return undefined;
}

/** The text colour that is read best on a surface of this colour. */
export const textColorOn = (color: string): '#000000' | '#ffffff' =>
  contrastOf(color, '#000000') >= contrastOf(color, '#ffffff') ? '#000000' : '#ffffff';

/** Of two colours as `#rrggbb`, from 1 to 21 (WCAG 2.2, "contrast ratio"). */
export function contrastOf(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminanceOf(one), luminanceOf(other)].toSorted(
    (left, right) => left - right,
  );
  return (lighter + 0.05) / (darker + 0.05);
}

function luminanceOf(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return share <= 0.040_45 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
