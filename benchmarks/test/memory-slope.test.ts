import { describe, expect, it } from 'vitest';
import { bytesOfOneMore } from '../src/memory-slope.ts';

describe('bytes of one more', () => {
  it('leave out the constant part', async () => {
    const each = await bytesOfOneMore('event', [1_000, 5_000], (size) =>
      Promise.resolve(7_000_000 + size * 320),
    );
    expect(each).toBe(320);
  });

  it('want two sizes, the smaller first', async () => {
    const at = (size: number) => Promise.resolve(size);
    await expect(bytesOfOneMore('event', [5_000, 1_000], at)).rejects.toThrow('two sizes');
    await expect(bytesOfOneMore('event', [1_000], at)).rejects.toThrow('two sizes');
    await expect(bytesOfOneMore('event', [1_000, 5_000, 9_000], at)).rejects.toThrow('two sizes');
  });
});
